#include <span>
#include <utility>

#include "viewer/panels/panels.h"
#include "viewer/theme.h"

namespace mjp::app {

namespace {

using Keys = std::pair<const char*, const char*>;

constexpr Keys kKeys[] = {
    {"Space", "play, pause"},
    {"Right, Left", "one control step forward, back"},
    {"Backspace", "restart the episode"},
    {"N, P", "next seed, previous seed"},
    {"+, -", "faster, slower"},
    {"[, ]", "cameras of the model"},
    {"Esc", "free camera; newest decision"},
    {"C, D", "chunk, denoising over the scene"},
    {"G", "geoms of hidden groups"},
    {"V", "what the policy sees over the scene"},
    {"Tab", "next panels, where they have tabs"},
    {"Ctrl-P", "picture of the window (PNG)"},
    {"Ctrl-R", "record the window, stop"},
    {"F1", "this help"},
    {"Left drag, wheel", "turn, zoom"},
    {"Right drag", "move the camera"},
    {"Double click", "select a body"},
    {"Ctrl-drag", "push it (right), turn it (left)"},
    {"Drop a file, folder", "a model; a checkpoint; an evaluation to replay"},
};

constexpr Keys kRecordingKeys[] = {
    {"Enter", "start; keep the episode"},
    {"Backspace", "discard it: this start again"},
    {"N", "another start"},
    {"R", "one second back"},
    {"Space", "pause, go on"},
    {"Arrows", "the hand: left, right, away, near"},
    {"PageUp, PageDown", "up, down; E and Q too"},
    {"Shift with these", "turn the hand"},
    {"Ctrl-left drag", "the hand with the mouse, upright"},
    {"Ctrl-right drag", "the same, level"},
    {"Ctrl-wheel", "the same, away and near"},
    {"M", "drag a mocap body instead"},
    {"J, K", "close, open the gripper"},
    {"1 to 9, 0", "J and K drive this number; gripper"},
    {"Without a hand", "arrows drive the first two numbers"},
    {"Gamepad", "sticks: hand; triggers: gripper"},
    {"A, B, X, Y", "keep, discard, back, another start"},
    {"+, -", "faster, slower"},
    {"[, ], Esc", "cameras; the free one"},
    {"Left drag, wheel", "turn, zoom"},
    {"F1", "this help"},
};

}  // namespace

void DrawHelpPanel(const SimSnapshot& snapshot, const UiState& ui, ImVec2 low, ImVec2 high) {
  if (!ui.show_help) return;
  const std::span<const Keys> keys =
      snapshot.recording ? std::span<const Keys>(kRecordingKeys) : std::span<const Keys>(kKeys);
  constexpr float kWidth = 31, kHeight = 34;  // letters, of all that it says
  const float em = ImGui::GetFontSize();
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  if (high.x - low.x < kWidth * em || high.y - low.y < kHeight * em) {
    low = ImVec2(0, 0);
    high = window;
  }
  ImGui::SetNextWindowPos(ImVec2((low.x + high.x) / 2, (low.y + high.y) / 2), 0,
                          ImVec2(0.5f, 0.5f));
  // scrolls where the window is lower still
  ImGui::SetNextWindowSizeConstraints(ImVec2(0, 0), window);
  const ImGuiWindowFlags flags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                 ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoMove |
                                 ImGuiWindowFlags_AlwaysAutoResize |
                                 ImGuiWindowFlags_NoSavedSettings;
  ImGui::PushStyleColor(ImGuiCol_WindowBg, IM_COL32(33, 38, 48, 255));
  ImGui::Begin("help", nullptr, flags);
  ImGui::TextUnformatted("Keys and mouse");
  ImGui::Spacing();
  if (ImGui::BeginTable("keys", 2, ImGuiTableFlags_SizingFixedFit)) {
    for (const auto& [key, action] : keys) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(color::kAccent), "%s", key);
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(action);
    }
    ImGui::EndTable();
  }
  ImGui::End();
  ImGui::PopStyleColor();
}

}  // namespace mjp::app

#include <algorithm>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

// Where the encoder looks in picture `index`, drawn over it; one hue per point.
void DrawKeypoints(const DecisionRecord& decision, const PolicyInfo& info, int index, int count,
                   ImVec2 corner, ImVec2 size) {
  const size_t points = decision.keypoints.size() / (2 * static_cast<size_t>(count));
  const float* place = decision.keypoints.data() + 2 * points * index;
  const float radius = std::max(2.0f, 0.018f * size.x);
  for (size_t k = 0; k < points; ++k) {
    const float x = place[2 * k], y = place[2 * k + 1];
    if (x < 0 || y < 0) continue;
    const ImVec2 at(corner.x + (x + 0.5f) / static_cast<float>(info.picture_width) * size.x,
                    corner.y + (y + 0.5f) / static_cast<float>(info.picture_height) * size.y);
    const ImU32 hue = ImColor::HSV(static_cast<float>(k) / static_cast<float>(points), 0.9f, 0.95f);
    ImGui::GetWindowDrawList()->AddCircleFilled(at, radius, hue);
  }
}

void DrawPicture(const DecisionRecord& decision, const PolicyInfo& info, const UiState& ui,
                 int index, float width) {
  const float height = width * static_cast<float>(info.picture_height) /
                       static_cast<float>(std::max(1, info.picture_width));
  const ImVec2 corner = ImGui::GetCursorScreenPos(), size(width, height);
  ImGui::Image(ui.pictures[index], size);
  const int count = static_cast<int>(ui.pictures.size());
  if (!decision.keypoints.empty()) DrawKeypoints(decision, info, index, count, corner, size);
}

// At the right end of the captions' line.
void DrawKeypointSwitch(UiState& ui, float line) {
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(0, 0));
  const float width = 1.5f * ImGui::GetFontSize() + ImGui::CalcTextSize("keypoints").x;
  ImGui::SetCursorPos(ImVec2(ImGui::GetWindowContentRegionMax().x - width, line));
  if (ImGui::Checkbox("keypoints", &ui.keypoints)) ui.Ask(KeypointCommand{ui.keypoints});
  ImGui::PopStyleVar();
}

}  // namespace

void DrawPicturePanel(const SimSnapshot& snapshot, UiState& ui) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  PanelTitle("What the policy sees",
             shown ? Format("step %d", shown->step) : std::string("no decision yet"));
  const PolicyInfo& info = *snapshot.policy;
  const int count = static_cast<int>(ui.pictures.size());
  if (!shown || count == 0) return;
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float captions_height = ImGui::GetTextLineHeightWithSpacing();
  const float widest = (room.y - captions_height) * static_cast<float>(info.picture_width) /
                       static_cast<float>(std::max(1, info.picture_height));
  const float edge = std::min((room.x - gap * (count - 1)) / count, widest);
  bool hovered = false;
  float captions = 0;  // where the line below the pictures begins
  for (int i = 0; i < count; ++i) {
    if (i > 0) ImGui::SameLine();
    ImGui::BeginGroup();
    DrawPicture(*shown, info, ui, i, edge);
    hovered |= ImGui::IsItemHovered();
    captions = ImGui::GetCursorPosY();
    const int age = count - 1 - i;
    ImGui::TextDisabled("%s",
                        age == 0 ? "now" : Format("-%.0f ms", 1e3 * snapshot.period * age).c_str());
    ImGui::EndGroup();
  }
  if (info.has_keypoints) DrawKeypointSwitch(ui, captions);
  if (!hovered) return;
  ImGui::BeginTooltip();
  for (int i = 0; i < count; ++i) {
    if (i > 0) ImGui::SameLine();
    DrawPicture(*shown, info, ui, i, 20 * ImGui::GetFontSize());
  }
  ImGui::TextDisabled("%d x %d px each%s", info.picture_width, info.picture_height,
                      shown->keypoints.empty() ? "" : "; points: where the encoder looks");
  ImGui::EndTooltip();
}

}  // namespace mjp::app

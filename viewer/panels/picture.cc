#include <algorithm>
#include <cmath>
#include <string>

#include "viewer/panels/attention_map.h"
#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

// What is drawn: pictures (To, cameras) of a decision, and what over them.
struct Pictures {
  const DecisionRecord& decision;
  const PolicyInfo& policy;
  const UiState& ui;
  double period;
  AttentionView attention;

  int count() const { return static_cast<int>(ui.pictures.size()); }
  int cameras() const { return std::max(1, static_cast<int>(policy.cameras.size())); }
  float Aspect() const {  // width over height
    return static_cast<float>(policy.picture_width) /
           static_cast<float>(std::max(1, policy.picture_height));
  }
};

// How many stand side by side in a room, and how wide each is, so that they are as large as can be.
struct Grid {
  int columns = 1;
  float width = 0;
};

Grid GridFor(int count, float aspect, ImVec2 room, float gap, float caption) {
  Grid best;
  for (int columns = 1; columns <= count; ++columns) {
    const int rows = (count + columns - 1) / columns;
    const float high = (room.y - gap * static_cast<float>(rows - 1)) / static_cast<float>(rows);
    const float wide =
        (room.x - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns);
    const float width = std::min(wide, (high - caption) * aspect);
    if (width > best.width) best = {columns, width};
  }
  best.width = std::max(best.width, 1.0f);
  return best;
}

// Where the encoder looks in a picture of the first camera, drawn over it; one hue per point.
void DrawKeypoints(const Pictures& p, int step, ImVec2 corner, ImVec2 size) {
  const int steps = p.count() / p.cameras();
  const size_t points = p.decision.keypoints.size() / (2 * static_cast<size_t>(steps));
  const float* place = p.decision.keypoints.data() + 2 * points * step;
  const float radius = std::max(2.0f, 0.018f * size.x);
  for (size_t k = 0; k < points; ++k) {
    const float x = place[2 * k], y = place[2 * k + 1];
    if (x < 0 || y < 0) continue;
    const ImVec2 at(corner.x + (x + 0.5f) / static_cast<float>(p.policy.picture_width) * size.x,
                    corner.y + (y + 0.5f) / static_cast<float>(p.policy.picture_height) * size.y);
    const ImU32 hue = ImColor::HSV(static_cast<float>(k) / static_cast<float>(points), 0.9f, 0.95f);
    ImGui::GetWindowDrawList()->AddCircleFilled(at, radius, hue);
  }
}

void DrawPicture(const Pictures& p, int index, float width) {
  const ImVec2 corner = ImGui::GetCursorScreenPos(), size(width, width / p.Aspect());
  ImGui::Image(p.ui.pictures[index], size);
  const int camera = index % p.cameras();
  if (!p.attention.weights.empty()) DrawAttention(p.attention, p.policy, camera, corner, size);
  if (camera == 0 && !p.decision.keypoints.empty())
    DrawKeypoints(p, index / p.cameras(), corner, size);
}

// Which picture it is: of which camera where there are several, and how old.
std::string NameOf(const Pictures& p, int index) {
  const int age = p.count() / p.cameras() - 1 - index / p.cameras();
  const std::string when = age == 0 ? "now" : Format("-%.0f ms", 1e3 * p.period * age);
  if (p.cameras() == 1) return when;
  const std::string& name = p.policy.cameras[index % p.cameras()];
  const std::string shorter = name.substr(name.rfind('.') + 1);
  return p.count() == p.cameras() ? shorter : shorter + ", " + when;
}

// All pictures with their names. Returns whether the mouse is over one of them.
bool DrawPictures(const Pictures& p, const Grid& grid) {
  bool hovered = false;
  for (int i = 0; i < p.count(); ++i) {
    if (i % grid.columns > 0) ImGui::SameLine();
    ImGui::BeginGroup();
    DrawPicture(p, i, grid.width);
    hovered |= ImGui::IsItemHovered();
    ImGui::TextDisabled("%s", Shorten(NameOf(p, i), grid.width).c_str());
    ImGui::EndGroup();
  }
  return hovered;
}

// At the right end of the captions' line.
void DrawKeypointSwitch(UiState& ui, float line) {
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(0, 0));
  const float width = 1.5f * ImGui::GetFontSize() + ImGui::CalcTextSize("keypoints").x;
  ImGui::SetCursorPos(ImVec2(ImGui::GetWindowContentRegionMax().x - width, line));
  if (ImGui::Checkbox("keypoints", &ui.keypoints)) ui.Ask(KeypointCommand{ui.keypoints});
  ImGui::PopStyleVar();
}

// Whether attention is shown, and of which action: at the end of the current line, or below it.
void DrawAttentionControls(const PolicyInfo& policy, bool one_line, UiState& ui) {
  ImGui::Checkbox("attention", &ui.attention);
  if (!ui.attention) return;
  if (one_line) ImGui::SameLine();
  if (ui.found_attention && !ui.found_attention->error.empty()) {
    const std::string& error = ui.found_attention->error;
    const float room = ImGui::GetContentRegionAvail().x;
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(color::kBad), "%s",
                       Shorten(error, room).c_str());
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", error.c_str());
    return;
  }
  ImGui::SetNextItemWidth(-1);
  int action = std::min(ui.attention_action, policy.horizon - 1);
  const char* format = action < 0 ? "all actions" : "action %d";
  if (ImGui::SliderInt("##action", &action, -1, policy.horizon - 1, format,
                       ImGuiSliderFlags_AlwaysClamp)) {
    ui.attention_action = action;
  }
}

// What the colours over the pictures mean.
std::string AttentionText(const Pictures& p) {
  const int action = std::min(p.ui.attention_action, p.policy.horizon - 1);
  const std::string of = action < 0 ? Format("all %d actions, their mean", p.policy.horizon)
                                    : Format("action %d, of 0 to %d", action, p.policy.horizon - 1);
  return Format(
      "attention of %s\na token: %.3g %% (dark) to %.3g %% (light)\nall pictures: %.3g %%; "
      "found by the CPU, beside the decision",
      of.c_str(), 100 * p.attention.low, 100 * p.attention.high, 100 * p.attention.pictures);
}

// The same pictures, larger, under the mouse.
void DrawUnderMouse(const Pictures& p) {
  constexpr int kRow = 3;  // pictures; of more, about as many stand below as beside each other
  const int count = p.count();
  const int columns =
      count <= kRow ? count : static_cast<int>(std::ceil(std::sqrt(static_cast<float>(count))));
  const float most = 0.6f * ImGui::GetIO().DisplaySize.x / static_cast<float>(columns);
  ImGui::BeginTooltip();
  DrawPictures(p, {columns, std::min(20 * ImGui::GetFontSize(), most)});
  ImGui::TextDisabled("%d x %d px each%s; click: over the scene", p.policy.picture_width,
                      p.policy.picture_height,
                      p.decision.keypoints.empty() ? "" : "; points: where the encoder looks");
  if (!p.attention.weights.empty()) ImGui::TextDisabled("%s", AttentionText(p).c_str());
  ImGui::EndTooltip();
}

std::string CaptionOf(const DecisionRecord* shown, const UiState& ui) {
  if (!shown) return "no decision yet";
  if (!ui.attention || !ui.found_attention) return Format("step %d", shown->step);
  const DecisionRecord& found = *ui.found_attention->decision;
  if (SameDecision(found, *shown)) return Format("step %d", shown->step);
  return Format("step %d, attention of %d", shown->step, found.step);
}

// What is to be drawn of the decision that is shown.
Pictures PicturesFor(const DecisionRecord& shown, const SimSnapshot& snapshot, const UiState& ui) {
  Pictures pictures{shown, *snapshot.policy, ui, snapshot.period, {}};
  if (ui.found_attention)
    pictures.attention = ViewOf(*ui.found_attention, *snapshot.policy, ui.attention_action);
  return pictures;
}

}  // namespace

void DrawPicturePanel(const SimSnapshot& snapshot, UiState& ui) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  const PolicyInfo& info = *snapshot.policy;
  PanelTitle("What the policy sees",
             info.horizon > 0 ? CaptionOf(shown.get(), ui) : std::string("no policy"));
  if (!shown || ui.pictures.empty()) return;
  const Pictures pictures = PicturesFor(*shown, snapshot, ui);
  const float gap = ImGui::GetStyle().ItemSpacing.x, em = ImGui::GetFontSize();
  const float caption = ImGui::GetTextLineHeightWithSpacing();
  const ImVec2 room = ImGui::GetContentRegionAvail(), corner = ImGui::GetCursorPos();
  Grid grid = GridFor(pictures.count(), pictures.Aspect(), room, gap, caption);
  // what belongs to attention stands beside the pictures where they leave it room, else below
  constexpr float kBeside = 8.5f;  // letters
  const auto columns = static_cast<float>(grid.columns);
  const float left = columns * (grid.width + gap);
  const bool beside = room.x - left >= kBeside * em;
  if (!info.attended.empty() && !beside) {
    const ImVec2 above(room.x, room.y - ImGui::GetFrameHeightWithSpacing());
    grid = GridFor(pictures.count(), pictures.Aspect(), above, gap, caption);
  }
  const bool hovered = DrawPictures(pictures, grid);
  if (info.has_keypoints) DrawKeypointSwitch(ui, ImGui::GetCursorPosY() - caption);
  if (!info.attended.empty()) {
    if (beside) ImGui::SetCursorPos(ImVec2(corner.x + left, corner.y));
    ImGui::BeginGroup();
    DrawAttentionControls(info, !beside, ui);
    if (beside && !pictures.attention.weights.empty()) {
      ImGui::TextDisabled("a token has\n%.3g %% (dark) to\n%.3g %% (light)",
                          100 * pictures.attention.low, 100 * pictures.attention.high);
    }
    ImGui::EndGroup();
  }
  if (hovered && !ui.large_pictures) DrawUnderMouse(pictures);
  if (hovered && ImGui::IsMouseClicked(0)) ui.large_pictures = !ui.large_pictures;
}

void DrawLargePicturePanel(const SimSnapshot& snapshot, UiState& ui, ImVec2 low, ImVec2 high) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  if (!ui.large_pictures || !shown || ui.pictures.empty()) return;
  const PolicyInfo& info = *snapshot.policy;
  const Pictures pictures = PicturesFor(*shown, snapshot, ui);
  ImGui::SetNextWindowPos(low);
  ImGui::SetNextWindowSize(ImVec2(high.x - low.x, high.y - low.y));
  ImGui::Begin("pictures over the scene", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav);
  PanelTitle("What the policy sees, V: the scene", CaptionOf(shown.get(), ui));
  ImVec2 room = ImGui::GetContentRegionAvail();
  const float line = ImGui::GetTextLineHeightWithSpacing();
  if (!info.attended.empty()) room.y -= ImGui::GetFrameHeightWithSpacing() + 4 * line;
  const Grid grid =
      GridFor(pictures.count(), pictures.Aspect(), room, ImGui::GetStyle().ItemSpacing.x, line);
  const bool hovered = DrawPictures(pictures, grid);
  if (!info.attended.empty()) DrawAttentionControls(info, true, ui);
  ImGui::PushTextWrapPos(0);
  if (!pictures.attention.weights.empty())
    ImGui::TextDisabled("%s", AttentionText(pictures).c_str());
  ImGui::PopTextWrapPos();
  if (hovered && ImGui::IsMouseClicked(0)) ui.large_pictures = false;
  ImGui::End();
}

}  // namespace mjp::app

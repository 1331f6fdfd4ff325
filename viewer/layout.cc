#include "viewer/layout.h"

#include <string>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

// layout pixels
constexpr float kLeft = 264, kRight = 400, kBottom = 204, kBar = 30, kGap = 2;
constexpr float kControl = 362, kPictures = 172, kTiming = 366, kTimeline = 158;

using PanelFunction = void (*)(const SimSnapshot&, UiState&);

void DrawPanel(const char* id, const Area& area, PanelFunction draw, const SimSnapshot& snapshot,
               UiState& ui) {
  ImGui::SetNextWindowPos(ImVec2(area.x, area.y));
  ImGui::SetNextWindowSize(ImVec2(area.width, area.height));
  ImGui::Begin(id, nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                   ImGuiWindowFlags_NoNav);
  draw(snapshot, ui);
  ImGui::End();
}

void DrawText(ImDrawList& draw, ImVec2 at, ImU32 color, const std::string& text) {
  draw.AddText(at, color, text.c_str());
}

// The line above the scene: what it shows at the left, in which state it is at the right.
void DrawCaptions(const SimSnapshot& snapshot, const UiState& ui, const Area& bar) {
  ImDrawList& draw = *ImGui::GetBackgroundDrawList();
  const float em = ImGui::GetFontSize();
  const float left = bar.x + 0.8f * em, top = bar.y + 0.5f * (bar.height - em);
  draw.AddRectFilled(ImVec2(bar.x, bar.y), ImVec2(bar.x + bar.width, bar.y + bar.height),
                     color::kPanel);
  std::string text =
      Format("seed %u   step %d   %.1f s", snapshot.seed, snapshot.step, snapshot.time);
  if (ui.frames_per_second > 0) {
    text += Format("      %.0f frames/s, panels %.1f ms", ui.frames_per_second, ui.ui_ms);
  }
  DrawText(draw, ImVec2(left, top), color::kText, text);
  std::string state = snapshot.playing ? "running" : "paused";
  ImU32 hue = color::kDim;
  if (snapshot.finished) {
    state = snapshot.success ? Format("solved in %.1f s", snapshot.step * snapshot.period)
                             : "not solved";
    hue = snapshot.success ? color::kGood : color::kBad;
  } else if (ui.selected) {
    state = Format("shown: decision %d", ui.selected->decision);
    hue = color::kAccent;
  }
  if (snapshot.disturbed) state += ", disturbed by hand";
  if (ui.recording) state += ", recording";
  const float width = ImGui::CalcTextSize(state.c_str()).x;
  DrawText(draw, ImVec2(bar.x + bar.width - width - 0.8f * em, top), hue, state);
}

// The last error or notice, on a plate at the foot of the scene.
void DrawMessage(const SimSnapshot& snapshot, const UiState& ui, const Area& scene) {
  const std::string& text = snapshot.message.empty() ? ui.notice : snapshot.message;
  if (text.empty()) return;
  ImDrawList& draw = *ImGui::GetBackgroundDrawList();
  const float em = ImGui::GetFontSize(), wrap = scene.width - 2.4f * em;
  const ImVec2 size = ImGui::CalcTextSize(text.c_str(), nullptr, false, wrap);
  const ImVec2 low(scene.x + 0.6f * em, scene.y + scene.height - size.y - 1.4f * em);
  const ImVec2 high(low.x + size.x + 1.2f * em, low.y + size.y + 0.8f * em);
  draw.AddRectFilled(low, high, IM_COL32(20, 24, 31, 235), 0.3f * em);
  draw.AddText(nullptr, 0, ImVec2(low.x + 0.6f * em, low.y + 0.4f * em),
               snapshot.message.empty() ? color::kText : color::kBad, text.c_str(), nullptr, wrap);
}

}  // namespace

Area DrawPanels(const SimSnapshot& snapshot, UiState& ui, float scale) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float left = kLeft * scale, right = kRight * scale, gap = kGap * scale;
  const float bottom = kBottom * scale, control = kControl * scale, pictures = kPictures * scale;
  const float x_right = window.x - right, middle = window.x - left - right - 2 * gap;
  const float y_episodes = control + pictures + 2 * gap;
  DrawPanel("control", {0, 0, left, control}, DrawControlPanel, snapshot, ui);
  DrawPanel("pictures", {0, control + gap, left, pictures}, DrawPicturePanel, snapshot, ui);
  DrawPanel("episodes", {0, y_episodes, left, window.y - y_episodes}, DrawEpisodePanel, snapshot,
            ui);
  const float timing = kTiming * scale, timeline = kTimeline * scale;
  const float y_history = timing + timeline + 2 * gap;
  DrawPanel("timing", {x_right, 0, right, timing}, DrawTimingPanel, snapshot, ui);
  DrawPanel("timeline", {x_right, timing + gap, right, timeline}, DrawTimelinePanel, snapshot, ui);
  DrawPanel("history", {x_right, y_history, right, window.y - y_history}, DrawHistoryPanel,
            snapshot, ui);
  const float x_middle = left + gap, y_bottom = window.y - bottom;
  const float denoising = bottom + 92 * scale;
  DrawPanel("score", {x_middle, y_bottom, middle - denoising - gap, bottom}, DrawScorePanel,
            snapshot, ui);
  DrawPanel("denoising", {x_right - gap - denoising, y_bottom, denoising, bottom},
            DrawDenoisingPanel, snapshot, ui);
  const float bar = kBar * scale;
  const Area scene = {x_middle, bar + gap, middle, y_bottom - bar - 2 * gap};
  DrawCaptions(snapshot, ui, {x_middle, 0, middle, bar});
  DrawMessage(snapshot, ui, scene);
  DrawHelpPanel(ui, ImVec2(scene.x + scene.width / 2, scene.y + scene.height / 2));
  return scene;
}

}  // namespace mjp::app

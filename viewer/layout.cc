#include "viewer/layout.h"

#include <string>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace pusht {
namespace {

// layout pixels
constexpr float kLeft = 264, kRight = 400, kBottom = 204, kGap = 2;
constexpr float kControl = 382, kPictures = 172, kTiming = 384, kTimeline = 158;

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

// What the scene shows, in its corners.
void DrawCaptions(const SimSnapshot& snapshot, const UiState& ui, const Area& scene) {
  ImDrawList& draw = *ImGui::GetBackgroundDrawList();
  const float em = ImGui::GetFontSize();
  const float left = scene.x + 0.8f * em, top = scene.y + 0.6f * em;
  DrawText(draw, ImVec2(left, top), color::kText,
           Format("seed %u   step %d   %.1f s", snapshot.seed, snapshot.step, snapshot.time));
  std::string state = snapshot.playing ? "running" : "paused";
  ImU32 hue = color::kDim;
  if (snapshot.finished) {
    state = snapshot.success ? Format("solved in %.1f s", snapshot.step * 0.1) : "not solved";
    hue = snapshot.success ? color::kGood : color::kBad;
  } else if (ui.selected) {
    state = Format("shown: decision %d", ui.selected->decision);
    hue = color::kAccent;
  }
  if (snapshot.disturbed) state += ", disturbed by hand";
  const float width = ImGui::CalcTextSize(state.c_str()).x;
  DrawText(draw, ImVec2(scene.x + scene.width - width - 0.8f * em, top), hue, state);
  const float bottom = scene.y + scene.height - 1.6f * em;
  const std::string figures =
      Format("%s%.0f frames/s   panels %.1f ms", ui.recording ? "recording   " : "",
             ui.frames_per_second, ui.ui_ms);
  if (ui.frames_per_second > 0) DrawText(draw, ImVec2(left, bottom), color::kDim, figures);
  const std::string& text = snapshot.message.empty() ? ui.notice : snapshot.message;
  if (text.empty()) return;
  draw.AddText(nullptr, 0, ImVec2(left, top + 1.6f * em),
               snapshot.message.empty() ? color::kDim : color::kBad, text.c_str(), nullptr,
               scene.width - 1.6f * em);
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
  const Area scene = {x_middle, 0, middle, y_bottom - gap};
  DrawCaptions(snapshot, ui, scene);
  DrawHelpPanel(ui);
  return scene;
}

}  // namespace pusht

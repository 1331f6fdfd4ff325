#include <algorithm>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace pusht {
namespace {

constexpr double kWorld = 512;  // pixels
constexpr int kTrail = 12;      // denoising steps drawn before the one shown

// One chunk (H, 2) as a line with its end marked.
void DrawChunk(const Plot& plot, const float* chunk, int horizon, ImU32 color, float width) {
  std::vector<ImVec2> points;
  for (int i = 0; i < horizon; ++i) points.push_back(plot.At(chunk[2 * i], chunk[2 * i + 1]));
  plot.draw().AddPolyline(points.data(), horizon, color, 0, width);
  plot.draw().AddCircleFilled(points.back(), 1.4f * width, color);
}

// Noise is violet, the finished chunk is the accent.
ImU32 ChainColor(double share, int alpha) {
  const auto mix = [share](int a, int b) { return static_cast<int>(a + share * (b - a)); };
  return IM_COL32(mix(190, 94), mix(90, 176), mix(255, 255), alpha);
}

void DrawFan(const Plot& plot, const DecisionRecord& decision, int horizon, int step) {
  const float em = ImGui::GetFontSize();
  const size_t size = 2 * static_cast<size_t>(horizon);
  const int steps = static_cast<int>(decision.denoising.size() / size);
  plot.draw().PushClipRect(plot.low(), plot.high(), true);
  for (int k = std::max(0, step - kTrail); k < step; ++k) {
    const double share = 1.0 - static_cast<double>(step - k) / kTrail;
    DrawChunk(plot, &decision.denoising[k * size], horizon,
              ChainColor(share, static_cast<int>(20 + 150 * share)), 0.06f * em);
  }
  for (size_t i = 0; i + size <= decision.samples.size(); i += size) {
    DrawChunk(plot, &decision.samples[i], horizon, IM_COL32(255, 190, 92, 130), 0.08f * em);
  }
  if (step < steps) {
    DrawChunk(plot, &decision.denoising[step * size], horizon, color::kText, 0.16f * em);
  }
  plot.draw().AddCircle(plot.At(decision.agent[0], decision.agent[1]), 0.5f * em, color::kGood, 0,
                        0.12f * em);
  plot.draw().PopClipRect();
}

}  // namespace

void DrawDenoisingPanel(const SimSnapshot& snapshot, UiState& ui) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  const int horizon = snapshot.policy->horizon;
  const int steps = shown ? static_cast<int>(shown->denoising.size() / (2 * horizon)) : 0;
  PanelTitle("Denoising", shown ? Format("%d steps, %d passes", steps, shown->times.passes) : "");
  const float em = ImGui::GetFontSize();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float edge = std::min(room.x, room.y);
  // y points down, as in the pictures
  const Plot plot("fan", ImVec2(edge, room.y), {0, kWorld}, {kWorld, 0}, 0, room.y - edge);
  ImGui::SameLine();
  ImGui::BeginGroup();
  if (steps == 0) {
    ImGui::PushTextWrapPos(0);
    ImGui::TextDisabled(shown ? "Tick Trace to keep the chain." : "No decision yet.");
    ImGui::PopTextWrapPos();
  } else {
    int step = ui.denoising_step < 0 ? steps - 1 : std::min(ui.denoising_step, steps - 1);
    ImGui::TextDisabled("chunk after step");
    ImGui::SetNextItemWidth(-1);
    if (ImGui::SliderInt("##chain", &step, 0, steps - 1, "%d")) {
      ui.denoising_step = step == steps - 1 ? -1 : step;
    }
    DrawFan(plot, *shown, horizon, step);
    if (!ui.selected && ImGui::Button("8 samples", ImVec2(-1, 0))) {
      ui.Ask(SampleCommand{8});
    }
    ImGui::TextDisabled("512 x 512 px");
    const ImVec2 at = ImGui::GetCursorScreenPos();
    plot.draw().AddCircle(ImVec2(at.x + 0.5f * em, at.y + 0.5f * em), 0.35f * em, color::kGood, 0,
                          0.12f * em);
    ImGui::SetCursorScreenPos(ImVec2(at.x + 1.3f * em, at.y));
    ImGui::TextDisabled("agent");
  }
  ImGui::EndGroup();
}

}  // namespace pusht

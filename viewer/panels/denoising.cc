#include <algorithm>
#include <cmath>

#include "viewer/panels/fan.h"
#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

constexpr double kWorld = 512;    // pixels of the table
constexpr double kCloseUp = 160;  // pixels shown around a chunk, at least

// From the smallest to the largest number of a chunk, with a margin.
Plot::Range RangeOf(const std::vector<float>& actions) {
  const auto [low, high] = std::minmax_element(actions.begin(), actions.end());
  const double margin = 0.25 * (*high - *low) + 1e-3;
  return {*low - margin, *high + margin};
}

struct Square {
  double x = kWorld / 2, y = kWorld / 2, edge = kWorld;
};

// What holds the chunk and the agent, in whole steps so that it does not tremble.
Square CloseUp(const DecisionRecord& decision) {
  double low[2] = {decision.agent[0], decision.agent[1]}, high[2] = {low[0], low[1]};
  for (size_t i = 0; i < decision.actions.size(); ++i) {
    low[i % 2] = std::min<double>(low[i % 2], decision.actions[i]);
    high[i % 2] = std::max<double>(high[i % 2], decision.actions[i]);
  }
  const double extent = 1.2 * std::max(high[0] - low[0], high[1] - low[1]);
  const double edge = std::max(kCloseUp, std::ceil(extent / 40) * 40);
  return {(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, edge};
}

// The square at the left of the panel in which chunks are drawn.
Plot MakePlot(const DecisionRecord* shown, const PolicyInfo& policy) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  constexpr float kBeside = 7.5f;  // letters, of what stands beside it
  const float em = ImGui::GetFontSize();
  const float edge = std::max(em, std::min(room.x - kBeside * em, room.y));
  if (policy.on_table || !shown || shown->actions.empty()) {
    const Square s = shown ? CloseUp(*shown) : Square();
    // y points down, as in the pictures
    return Plot("fan", ImVec2(edge, room.y), {s.x - s.edge / 2, s.x + s.edge / 2},
                {s.y + s.edge / 2, s.y - s.edge / 2}, 0, room.y - edge);
  }
  const Plot::Range y = RangeOf(shown->actions);
  const Plot plot("fan", ImVec2(edge, room.y), {0, policy.horizon - 1.0}, y, 2.6f * em, 1.4f * em);
  const double tick = TickStep(y.high - y.low, 4);
  for (double at = std::ceil(y.low / tick) * tick; at <= y.high; at += tick) {
    plot.TickY(at, Format("%g", at));
  }
  for (const int step : {0, policy.horizon - 1}) plot.TickX(step, Format("%d", step));
  return plot;
}

// What the lines are, under the slider.
void DrawLegend(const Plot& plot, const DecisionRecord& shown, const PolicyInfo& policy) {
  if (!policy.on_table) {
    ImGui::TextDisabled("%d numbers of\nan action over\nthe steps", policy.action_dim);
    return;
  }
  const float em = ImGui::GetFontSize();
  const double edge = CloseUp(shown).edge;
  ImGui::TextDisabled("%.0f x %.0f px", edge, edge);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  plot.draw().AddCircle(ImVec2(at.x + 0.5f * em, at.y + 0.5f * em), 0.35f * em, color::kGood, 0,
                        0.12f * em);
  ImGui::SetCursorScreenPos(ImVec2(at.x + 1.3f * em, at.y));
  ImGui::TextDisabled("agent");
}

}  // namespace

void DrawDenoisingPanel(const SimSnapshot& snapshot, UiState& ui) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  const PolicyInfo& policy = *snapshot.policy;
  const bool traced = shown && !shown->actions.empty() && !shown->denoising.empty();
  const int steps = traced ? static_cast<int>(shown->denoising.size() / shown->actions.size()) : 0;
  PanelTitle("Denoising", shown ? Format("%d steps, %d passes", steps, shown->times.passes) : "");
  const Plot plot = MakePlot(shown.get(), policy);
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
    plot.draw().PushClipRect(plot.low(), plot.high(), true);
    DrawFan(plot, *shown, policy, step);
    plot.draw().PopClipRect();
    if (!ui.selected && ImGui::Button("8 samples", ImVec2(-1, 0))) {
      ui.Ask(SampleCommand{8});
    }
    DrawLegend(plot, *shown, policy);
  }
  ImGui::EndGroup();
}

}  // namespace mjp::app

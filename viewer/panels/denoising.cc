#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "viewer/panels/fan.h"
#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/panels/window_steps.h"
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

// The edge of the square at the left of the panel.
float EdgeOf(ImVec2 room) {
  constexpr float kBeside = 7.5f;  // letters, of what stands beside it
  const float em = ImGui::GetFontSize();
  return std::max(em, std::min(room.x - kBeside * em, room.y));
}

// The square in which chunks are drawn.
Plot MakePlot(const DecisionRecord* shown, const PolicyInfo& policy) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float em = ImGui::GetFontSize(), edge = EdgeOf(room);
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
    plot.TickY(at, Format("%g", at + 0.0));  // no -0
  }
  for (const int step : {0, policy.horizon - 1}) plot.TickX(step, Format("%d", step));
  return plot;
}

// What the lines are, under the slider.
void DrawLegend(const Plot& plot, const DecisionRecord& shown, const PolicyInfo& policy) {
  if (!policy.on_table) {
    ImGui::TextDisabled("%s of\nan action over\nthe steps",
                        Count(static_cast<size_t>(policy.action_dim), "number").c_str());
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

// The chain of a decision that has `steps` of it, and what is beside it.
void DrawChain(const DecisionRecord& shown, int steps, const PolicyInfo& policy, UiState& ui) {
  int step = ui.denoising_step < 0 ? steps - 1 : std::min(ui.denoising_step, steps - 1);
  const bool windows = ui.show_windows && !shown.residuals.empty();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  std::optional<Plot> plot;
  if (windows) {
    DrawWindowSteps(shown, steps, step, ImVec2(EdgeOf(room), room.y));
  } else {
    plot.emplace(MakePlot(&shown, policy));
  }
  ImGui::SameLine();
  ImGui::BeginGroup();
  ImGui::TextDisabled("chunk after step");
  ImGui::SetNextItemWidth(-1);
  if (ImGui::SliderInt("##chain", &step, 0, steps - 1, "%d")) {
    ui.denoising_step = step == steps - 1 ? -1 : step;
  }
  if (!shown.residuals.empty()) ImGui::Checkbox("windows", &ui.show_windows);
  if (windows) {
    DrawWindowLegend();
    ImGui::EndGroup();
    return;
  }
  plot->draw().PushClipRect(plot->low(), plot->high(), true);
  DrawFan(*plot, shown, policy, step);
  plot->draw().PopClipRect();
  if (!ui.selected && ImGui::Button("8 samples", ImVec2(-1, 0))) ui.Ask(SampleCommand{8});
  DrawLegend(*plot, shown, policy);
  ImGui::EndGroup();
}

// A chunk without a chain: that of a network of one pass, or of a decision that is not traced.
void DrawPlainChunk(const DecisionRecord* shown, const PolicyInfo& policy) {
  const Plot plot = MakePlot(shown, policy);
  ImGui::SameLine();
  ImGui::BeginGroup();
  const bool chain = !policy.samplers.empty();
  if (!shown || chain) {
    const char* none = policy.horizon > 0 ? "No decision yet." : "No policy.";
    ImGui::PushTextWrapPos(0);
    ImGui::TextDisabled("%s", shown ? "Tick Trace to keep the chain." : none);
    ImGui::PopTextWrapPos();
  }
  if (shown && !shown->actions.empty()) {
    plot.draw().PushClipRect(plot.low(), plot.high(), true);
    DrawChunk(plot, *shown, policy);
    plot.draw().PopClipRect();
    DrawLegend(plot, *shown, policy);
  }
  if (shown && !shown->shares.empty()) {
    ImGui::TextDisabled("chunk shares");
    DrawShares(shown->shares);
    ImGui::TextDisabled("old");
    const float width = ImGui::CalcTextSize("new").x;
    ImGui::SameLine();
    ImGui::SetCursorPosX(ImGui::GetWindowContentRegionMax().x - width);
    ImGui::TextDisabled("new");
  }
  ImGui::EndGroup();
}

// How the shown chunk came about, in short.
std::string CaptionOf(const DecisionRecord* shown, int steps, const PolicyInfo& policy) {
  if (!shown) return "";
  if (policy.samplers.empty()) {
    return shown->shares.empty() ? "one pass" : "mean of " + Count(shown->shares.size(), "chunk");
  }
  const std::string passes = steps > 0 ? Count(steps, "step") + ", " : "";
  return passes + Format("%d pass%s", shown->times.passes, shown->times.passes == 1 ? "" : "es");
}

}  // namespace

void DrawDenoisingPanel(const SimSnapshot& snapshot, UiState& ui) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  const PolicyInfo& policy = *snapshot.policy;
  const bool traced = shown && !shown->actions.empty() && !shown->denoising.empty();
  const int steps = traced ? static_cast<int>(shown->denoising.size() / shown->actions.size()) : 0;
  const bool one_pass = policy.samplers.empty() && policy.horizon > 0;
  PanelTitle(one_pass ? "Action chunk" : "Denoising", CaptionOf(shown.get(), steps, policy));
  if (steps > 0) {
    DrawChain(*shown, steps, policy, ui);
  } else {
    DrawPlainChunk(shown.get(), policy);
  }
}

}  // namespace mjp::app

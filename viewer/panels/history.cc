#include <imgui_internal.h>  // SetItemUsingMouseWheel

#include <algorithm>
#include <cmath>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

constexpr int kFewestBars = 8, kMostBars = 512;
constexpr int kBins = 40;

double NiceTop(double value) {
  const double tick = TickStep(std::max(value, 1e-3), 4);
  return std::ceil(value / tick) * tick;
}

void DrawBar(const Plot& plot, const DecisionRecord& decision, double x, double width) {
  double at = 0;
  for (int row = 0; row <= static_cast<int>(mjp::Stage::kFetch); ++row) {
    const double length = RowMilliseconds(decision.times, row);
    if (length <= 0) continue;
    plot.draw().AddRectFilled(plot.At(x, at + length), plot.At(x + width, at), RowColor(row));
    at += length;
  }
}

// The wheel shows more or fewer decisions, a drag with the right button goes back in time.
void MoveRange(const DecisionLog& log, const Plot& plot, UiState& ui) {
  const ImGuiIO& io = ImGui::GetIO();
  const auto [first, last] = VisibleRange(log, ui);
  ImGui::SetItemUsingMouseWheel();  // the column does not scroll
  if (io.MouseWheel != 0) {
    const double wanted = std::round(ui.visible * std::pow(1.25, -io.MouseWheel));
    ui.visible = std::clamp(static_cast<int>(wanted), kFewestBars, kMostBars);
  }
  if (ImGui::IsMouseDragging(1, 0)) {
    const float bar = (plot.high().x - plot.low().x) / static_cast<float>(ui.visible);
    const int bars = static_cast<int>(std::lround(ImGui::GetMouseDragDelta(1, 0).x / bar));
    if (bars == 0) return;
    ImGui::ResetMouseDragDelta(1);
    const int newest = std::max(0, static_cast<int>(log.size()) - ui.visible);
    const int wanted = std::max(0, first - bars);
    ui.first_visible = wanted >= newest ? -1 : wanted;
  }
}

void DrawStrip(const SimSnapshot& snapshot, UiState& ui, ImVec2 size) {
  const DecisionLog& log = *snapshot.log;
  const float em = ImGui::GetFontSize();
  const auto [first, last] = VisibleRange(log, ui);
  double longest = 0;
  for (int i = first; i < last; ++i) {
    longest = std::max(longest, RowMilliseconds(log[i]->times, kDecisionRow));
  }
  const double top = NiceTop(1.05 * ScaleTop(longest, ui.budget_ms));
  const double bars = ui.visible;
  const Plot plot("history", size, {0, bars}, {0, top}, 4 * em, 0.3f * em);
  const double tick = TickStep(top, 3);
  for (double y = 0; y <= top; y += tick) plot.TickY(y, Format("%g ms", y));
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  for (int i = first; i < last; ++i) {
    DrawBar(plot, *log[i], i - first + 0.12, 0.76);
    if (log[i] != shown) continue;
    plot.draw().AddRect(plot.At(i - first, top), plot.At(i - first + 1.0, 0), color::kText);
  }
  if (ui.budget_ms <= top) plot.LineY(ui.budget_ms, color::kWarn);
  if (!plot.hovered()) return;
  MoveRange(log, plot, ui);
  const int at = first + static_cast<int>(plot.X(ImGui::GetIO().MousePos.x));
  if (at < first || at >= last) return;
  ImGui::SetTooltip(
      "decision %d of seed %u: %s ms\nclick: show it; wheel: more or fewer; "
      "right drag: go back",
      log[at]->decision, log[at]->seed,
      FormatMs(RowMilliseconds(log[at]->times, kDecisionRow)).c_str());
  if (ImGui::IsMouseClicked(0)) ui.selected = log[at];
}

void DrawHistogram(const SimSnapshot& snapshot, const UiState& ui) {
  const LogSummary summary = Summarise(*snapshot.log);
  const RowSummary& row = summary[ui.histogram_row];
  PanelTitle("Distribution", row.n > 0 ? Format("%s, line: median %s ms",
                                                RowName(ui.histogram_row, *snapshot.policy),
                                                FormatMs(row.median).c_str())
                                       : std::string("nothing yet"));
  const ImVec2 size = ImGui::GetContentRegionAvail();
  const float em = ImGui::GetFontSize();
  const double top = NiceTop(std::max(1e-3, 1.02 * row.worst));
  const std::vector<float> counts = Histogram(*snapshot.log, ui.histogram_row, kBins, top);
  const float most = std::max(1.0f, *std::max_element(counts.begin(), counts.end()));
  const Plot plot("histogram", size, {0, top}, {0, 1.1 * most}, 4 * em, 1.4f * em);
  plot.TickY(most, Format("%.0f x", most));
  const double tick = TickStep(top, 3);
  for (double x = 0; x <= top; x += tick) plot.TickX(x, Format("%g ms", x));
  for (int i = 0; i < kBins; ++i) {
    if (counts[i] == 0) continue;
    plot.draw().AddRectFilled(plot.At((i + 0.1) * top / kBins, counts[i]),
                              plot.At((i + 0.9) * top / kBins, 0), RowColor(ui.histogram_row));
  }
  const float median = plot.At(row.median, 0).x;
  plot.draw().AddLine(ImVec2(median, plot.low().y), ImVec2(median, plot.high().y), color::kText);
}

}  // namespace

void DrawHistoryPanel(const SimSnapshot& snapshot, UiState& ui) {
  const int misses = CountMisses(*snapshot.log, ui.budget_ms);
  const double factor = snapshot.real_time_factor;
  PanelTitle("Decisions",
             Format("%d of %zu over %.4g ms%s", misses, snapshot.log->size(), ui.budget_ms,
                    factor > 0 ? Format("   %.2f x real time", factor).c_str() : ""));
  const float em = ImGui::GetFontSize();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float line = em + 2 * ImGui::GetStyle().ItemSpacing.y;
  DrawStrip(snapshot, ui, ImVec2(room.x, 0.5f * (room.y - line)));
  DrawHistogram(snapshot, ui);
}

}  // namespace mjp::app

#include <algorithm>
#include <cmath>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace pusht {
namespace {

constexpr int kMostBars = 64;
constexpr int kBins = 40;

double NiceTop(double value) {
  const double tick = TickStep(std::max(value, 1e-3), 4);
  return std::ceil(value / tick) * tick;
}

void DrawBar(const Plot& plot, const DecisionRecord& decision, double x, double width) {
  double at = 0;
  for (int row = 0; row <= static_cast<int>(dp::Stage::kFetch); ++row) {
    const double length = RowMilliseconds(decision.times, row);
    if (length <= 0) continue;
    plot.draw().AddRectFilled(plot.At(x, at + length), plot.At(x + width, at), RowColor(row));
    at += length;
  }
}

void DrawStrip(const SimSnapshot& snapshot, UiState& ui, ImVec2 size) {
  const DecisionLog& log = *snapshot.log;
  const float em = ImGui::GetFontSize();
  const int first = std::max(0, static_cast<int>(log.size()) - kMostBars);
  double top = ui.budget_ms;
  for (size_t i = first; i < log.size(); ++i) {
    top = std::max(top, RowMilliseconds(log[i]->times, kDecisionRow));
  }
  top = NiceTop(1.05 * top);
  const Plot plot("history", size, {0, kMostBars}, {0, top}, 4 * em, 0.3f * em);
  const double tick = TickStep(top, 3);
  for (double y = 0; y <= top; y += tick) plot.TickY(y, Format("%g ms", y));
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  for (size_t i = first; i < log.size(); ++i) {
    const double x = static_cast<double>(i) - first;
    DrawBar(plot, *log[i], x + 0.12, 0.76);
    if (log[i] != shown) continue;
    plot.draw().AddRect(plot.At(x, top), plot.At(x + 1, 0), color::kText);
  }
  plot.LineY(ui.budget_ms, color::kWarn);
  if (!plot.hovered()) return;
  const int at = first + static_cast<int>(plot.X(ImGui::GetIO().MousePos.x));
  if (at < first || at >= static_cast<int>(log.size())) return;
  ImGui::SetTooltip("decision %d of seed %u: %s ms\nclick: show it", log[at]->decision,
                    log[at]->seed, FormatMs(RowMilliseconds(log[at]->times, kDecisionRow)).c_str());
  if (ImGui::IsMouseClicked(0)) ui.selected = log[at];
}

void DrawHistogram(const SimSnapshot& snapshot, const UiState& ui, ImVec2 size) {
  const LogSummary summary = Summarise(*snapshot.log);
  const RowSummary& row = summary[ui.histogram_row];
  const float em = ImGui::GetFontSize();
  const double top = NiceTop(std::max(1e-3, 1.02 * row.worst));
  const std::vector<float> counts = Histogram(*snapshot.log, ui.histogram_row, kBins, top);
  const float most = std::max(1.0f, *std::max_element(counts.begin(), counts.end()));
  const Plot plot("histogram", size, {0, top}, {0, 1.1 * most}, 4 * em, 1.4f * em);
  plot.TickY(most, Format("%.0f", most));
  const double tick = TickStep(top, 5);
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
  PanelTitle("Decisions", Format("%d of %zu over the budget   %.2f x real time", misses,
                                 snapshot.log->size(), snapshot.real_time_factor));
  const float em = ImGui::GetFontSize();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float line = em + 2 * ImGui::GetStyle().ItemSpacing.y;
  DrawStrip(snapshot, ui, ImVec2(room.x, 0.5f * (room.y - line)));
  PanelTitle("Distribution", Format("%s, line: median", RowName(ui.histogram_row)));
  DrawHistogram(snapshot, ui, ImGui::GetContentRegionAvail());
}

}  // namespace pusht

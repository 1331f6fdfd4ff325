#include <algorithm>
#include <limits>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace pusht {
namespace {

constexpr int kPhysics = static_cast<int>(dp::Stage::kPhysics);

std::vector<int> RowsOf(const dp::StageTimes& times) {
  std::vector<int> rows;
  for (int row = 0; row < kPhysics; ++row) {
    if (times.spans[row].end > times.spans[row].begin) rows.push_back(row);
  }
  return rows;
}

}  // namespace

void DrawTimelinePanel(const SimSnapshot& snapshot, UiState& ui) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  PanelTitle("Stages on the host's clock",
             shown ? Format("%d network passes", shown->times.passes) : "");
  if (!shown) return;
  const std::vector<int> rows = RowsOf(shown->times);
  if (rows.empty()) return;
  double begin = std::numeric_limits<double>::max(), end = 0;
  for (const int row : rows) {
    begin = std::min(begin, shown->times.spans[row].begin);
    end = std::max(end, shown->times.spans[row].end);
  }
  const double top = 1e3 * (end - begin);
  const float em = ImGui::GetFontSize();
  const double lanes = static_cast<double>(rows.size());
  const Plot plot("timeline", ImGui::GetContentRegionAvail(), {0, top}, {lanes, 0}, 5.2f * em,
                  1.4f * em);
  const double tick = TickStep(top, 4);
  for (double x = 0; x <= top; x += tick) plot.TickX(x, Format("%g ms", x));
  for (size_t i = 0; i < rows.size(); ++i) {
    const dp::StageTimes::Span& span = shown->times.spans[rows[i]];
    ImVec2 low = plot.At(1e3 * (span.begin - begin), i + 0.14);
    ImVec2 high = plot.At(1e3 * (span.end - begin), i + 0.86);
    high.x = std::max(high.x, low.x + 0.15f * em);
    plot.draw().AddRectFilled(low, high, RowColor(rows[i]), 2);
    plot.draw().AddText(ImVec2(plot.low().x - 5.2f * em, plot.At(0, i + 0.5).y - 0.5f * em),
                        color::kDim, RowName(rows[i]));
    const float mouse = ImGui::GetIO().MousePos.y;
    if (plot.hovered() && mouse >= plot.At(0, i).y && mouse < plot.At(0, i + 1.0).y) {
      ImGui::SetTooltip("%s\nfrom %s ms, %s ms long", RowName(rows[i]),
                        FormatMs(1e3 * (span.begin - begin)).c_str(),
                        FormatMs(1e3 * (span.end - span.begin)).c_str());
    }
  }
}

}  // namespace pusht

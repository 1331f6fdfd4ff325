#include <algorithm>
#include <cmath>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

void DrawCurve(const Plot& plot, const std::vector<float>& coverage, double period) {
  ImDrawList& draw = plot.draw();
  for (size_t i = 1; i < coverage.size(); ++i) {
    const ImVec2 a = plot.At((i - 1) * period, coverage[i - 1]);
    const ImVec2 b = plot.At(i * period, coverage[i]);
    const ImVec2 base(b.x, plot.high().y);
    draw.AddQuadFilled(a, b, base, ImVec2(a.x, plot.high().y), IM_COL32(94, 176, 255, 45));
    draw.AddLine(a, b, color::kAccent, 0.13f * ImGui::GetFontSize());
  }
  if (!coverage.empty()) {
    draw.AddCircleFilled(plot.At((coverage.size() - 1) * period, coverage.back()),
                         0.28f * ImGui::GetFontSize(), color::kText);
  }
}

}  // namespace

void DrawScorePanel(const SimSnapshot& snapshot, UiState& ui) {
  const std::vector<float>& coverage = *snapshot.coverage;
  if (coverage.empty()) {
    PanelTitle("Score");
    ImGui::TextDisabled("This model has no score.");
    return;
  }
  const std::string score = snapshot.episode ? Format("   score %.2f", snapshot.score) : "";
  PanelTitle(snapshot.score_name.c_str(),
             Format("%.0f %% now   best %.0f %%%s", 100 * coverage.back(),
                    100 * snapshot.max_coverage, score.c_str()));
  const float em = ImGui::GetFontSize();
  const double shown = std::max(10.0, std::ceil((coverage.size() - 1) * snapshot.period / 5) * 5);
  const Plot plot("coverage", ImGui::GetContentRegionAvail(), {0, shown}, {0, 1.02}, 3 * em,
                  1.4f * em);
  for (const double y : {0.0, 0.5}) plot.TickY(y, Format("%.0f %%", 100 * y));
  if (snapshot.solved_at > 0) {
    plot.TickY(snapshot.solved_at, Format("%.0f %%", 100 * snapshot.solved_at));
    plot.LineY(snapshot.solved_at, color::kGood);
  } else {
    plot.TickY(1, "100 %");
  }
  const double tick = TickStep(shown, 6);
  for (double x = 0; x <= shown; x += tick) plot.TickX(x, Format("%g s", x));
  DrawCurve(plot, coverage, snapshot.period);
  if (!plot.hovered()) return;
  const int first = snapshot.step + 1 - static_cast<int>(coverage.size());
  const double x = plot.X(ImGui::GetIO().MousePos.x);
  const int step = std::clamp(static_cast<int>(std::lround(x / snapshot.period)), 0,
                              static_cast<int>(coverage.size()) - 1);
  const ImVec2 at = plot.At(step * snapshot.period, 0);
  plot.draw().AddLine(ImVec2(at.x, plot.low().y), ImVec2(at.x, plot.high().y), color::kDim);
  ImGui::SetTooltip("step %d, %.1f s: %.1f %%\nclick: go back there", first + step,
                    (first + step) * snapshot.period, 100 * coverage[step]);
  if (ImGui::IsMouseReleased(0)) {
    ui.selected = nullptr;
    ui.Ask(SeekCommand{first + step});
  }
}

}  // namespace mjp::app

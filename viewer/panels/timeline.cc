#include <algorithm>
#include <limits>
#include <vector>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

constexpr int kPhysics = static_cast<int>(mjp::Stage::kPhysics);

// Of the rows of the panel, from the top.
enum Lane { kHost, kDevice };

struct Clock {
  double begin = std::numeric_limits<double>::max(), end = 0;  // seconds
};

// From the first stage to the end of the last; of physics no more than a share is shown.
Clock ClockOf(const mjp::StageTimes& times) {
  constexpr double kPhysicsShare = 0.25;  // of the decision
  Clock clock;
  for (const mjp::StageTimes::Span& span : times.spans) {
    if (span.end <= span.begin) continue;
    clock.begin = std::min(clock.begin, span.begin);
    clock.end = std::max(clock.end, span.end);
  }
  const double decided = times.spans[kPhysics].begin;
  if (decided > clock.begin) {
    clock.end = std::min(clock.end, decided + kPhysicsShare * (decided - clock.begin));
  }
  return clock;
}

// A bar with its name in it, where there is room. It ends where the plot does.
void DrawBar(const Plot& plot, double from, double to, double lane, ImU32 color, const char* name) {
  const float em = ImGui::GetFontSize();
  const ImVec2 low = plot.At(from, lane + 0.08);
  ImVec2 high = plot.At(to, lane + 0.92);
  high.x = std::min(std::max(high.x, low.x + 0.12f * em), plot.high().x);
  plot.draw().AddRectFilled(low, high, color, 2);
  const ImVec2 size = ImGui::CalcTextSize(name);
  if (size.x + 0.4f * em > high.x - low.x) return;
  plot.draw().AddText(ImVec2((low.x + high.x - size.x) / 2, (low.y + high.y - size.y) / 2),
                      color::kPlot, name);
}

// The network's passes as they were timed; where they were not, equal shares of the denoising.
std::vector<mjp::StageTimes::Span> PassesOf(const mjp::StageTimes& times) {
  if (!times.steps.empty() || times.passes <= 0) return times.steps;
  const mjp::StageTimes::Span& span = times[mjp::Stage::kDenoise];
  const double share = (span.end - span.begin) / times.passes;
  std::vector<mjp::StageTimes::Span> passes;
  passes.reserve(times.passes);
  for (int i = 0; i < times.passes; ++i) {
    passes.push_back({span.begin + share * i, span.begin + share * (i + 1)});
  }
  return passes;
}

void DrawPasses(const Plot& plot, const mjp::StageTimes& times, double origin, double lane) {
  const ImU32 color = RowColor(static_cast<int>(mjp::Stage::kDenoise));
  const ImU32 colors[2] = {color, Darker(color)};
  const std::vector<mjp::StageTimes::Span> passes = PassesOf(times);
  if (passes.empty()) return;
  const double average = 1e3 * (passes.back().end - passes.front().begin) / passes.size();
  // stripes of less than this would shimmer
  const bool striped = plot.At(average, 0).x - plot.At(0, 0).x > 0.2f * ImGui::GetFontSize();
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  for (size_t i = 0; i < passes.size(); ++i) {
    const double from = 1e3 * (passes[i].begin - origin), to = 1e3 * (passes[i].end - origin);
    const ImVec2 low = plot.At(from, lane + 0.08), high = plot.At(to, lane + 0.92);
    plot.draw().AddRectFilled(low, high, colors[striped ? i % 2 : 0]);
    if (!plot.hovered() || mouse.x < low.x || mouse.x >= high.x || mouse.y < low.y) continue;
    ImGui::SetTooltip("network pass %zu of %zu\n%s ms%s", i + 1, passes.size(),
                      FormatMs(to - from).c_str(),
                      times.steps.empty() ? " on average" : ", with the denoising after it");
  }
}

void DrawStages(const Plot& plot, const DecisionRecord& decision, const PolicyInfo& policy,
                double origin) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  for (int row = 0; row <= kPhysics; ++row) {
    const mjp::StageTimes::Span& span = decision.times.spans[row];
    if (span.end <= span.begin) continue;
    const int lane = OnDevice(decision, static_cast<mjp::Stage>(row)) ? kDevice : kHost;
    const double from = 1e3 * (span.begin - origin), to = 1e3 * (span.end - origin);
    DrawBar(plot, from, to, lane, RowColor(row), RowName(row, policy));
    const ImVec2 low = plot.At(from, lane), high = plot.At(to, lane + 1.0);
    if (!plot.hovered() || mouse.x < low.x || mouse.x > high.x + 1) continue;
    if (mouse.y < low.y || mouse.y >= high.y) continue;
    ImGui::SetTooltip("%s\nfrom %s ms, %s ms long%s", RowName(row, policy), FormatMs(from).c_str(),
                      FormatMs(to - from).c_str(),
                      row == kPhysics ? "\nbusy time of the steps until the next decision" : "");
  }
}

}  // namespace

void DrawTimelinePanel(const SimSnapshot& snapshot, UiState& ui) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  PanelTitle("Stages on one clock", shown ? Format("%d network pass%s", shown->times.passes,
                                                   shown->times.passes == 1 ? "" : "es")
                                          : "");
  if (!shown) return;
  const Clock clock = ClockOf(shown->times);
  if (clock.end <= clock.begin) return;
  const double top = 1e3 * (clock.end - clock.begin);
  const float em = ImGui::GetFontSize();
  std::vector<const char*> names = {"CPU"};
  if (shown->backend == mjp::Backend::kCuda) names.push_back("GPU");
  names.push_back("passes");
  const int lanes = static_cast<int>(names.size());
  const Plot plot("timeline", ImGui::GetContentRegionAvail(), {0, top}, {1.0 * lanes, 0}, 3.6f * em,
                  1.4f * em);
  const double tick = TickStep(top, 4);
  for (double x = 0; x <= top; x += tick) plot.TickX(x, Format("%g ms", x));
  for (int lane = 0; lane < lanes; ++lane) {
    plot.draw().AddText(ImVec2(plot.low().x - 3.6f * em, plot.At(0, lane + 0.5).y - 0.5f * em),
                        color::kDim, names[lane]);
    if (lane > 0) plot.LineY(lane, color::kGrid);
  }
  DrawStages(plot, *shown, *snapshot.policy, clock.begin);
  DrawPasses(plot, shown->times, clock.begin, lanes - 1);
}

}  // namespace mjp::app

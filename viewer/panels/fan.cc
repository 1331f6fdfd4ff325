#include "viewer/panels/fan.h"

#include <algorithm>
#include <vector>

#include "viewer/theme.h"

namespace mjp::app {
namespace {

constexpr int kTrail = 12;  // denoising steps drawn before the one shown

using DrawFunction = void (*)(const Plot&, const float* chunk, const PolicyInfo&, ImU32, float);

// One chunk (H, 2) on the table, as a line with its end marked.
void DrawWay(const Plot& plot, const float* chunk, const PolicyInfo& policy, ImU32 color,
             float width) {
  std::vector<ImVec2> points;
  points.reserve(policy.horizon);
  for (int i = 0; i < policy.horizon; ++i) {
    points.push_back(plot.At(chunk[2 * i], chunk[2 * i + 1]));
  }
  plot.draw().AddPolyline(points.data(), policy.horizon, color, 0, width);
  plot.draw().AddCircleFilled(points.back(), 1.4f * width, color);
}

// One number of the action over the steps of a chunk (H, D).
void DrawCurve(const Plot& plot, const float* chunk, const PolicyInfo& policy, int number,
               ImU32 color, float width) {
  std::vector<ImVec2> points(policy.horizon);
  for (int i = 0; i < policy.horizon; ++i) {
    points[i] = plot.At(i, chunk[policy.action_dim * i + number]);
  }
  plot.draw().AddPolyline(points.data(), policy.horizon, color, 0, width);
}

// One chunk: every number in one colour.
void DrawCurves(const Plot& plot, const float* chunk, const PolicyInfo& policy, ImU32 color,
                float width) {
  for (int d = 0; d < policy.action_dim; ++d) DrawCurve(plot, chunk, policy, d, color, width);
}

// The same with a hue for each number where there are several.
void DrawHues(const Plot& plot, const float* chunk, const PolicyInfo& policy, ImU32 color,
              float width) {
  for (int d = 0; d < policy.action_dim; ++d) {
    const float hue = static_cast<float>(d) / static_cast<float>(policy.action_dim);
    const ImU32 own = policy.action_dim == 1 ? color : ImU32{ImColor::HSV(hue, 0.5f, 0.95f)};
    DrawCurve(plot, chunk, policy, d, own, width);
  }
}

// Noise is violet, the finished chunk is the accent.
ImU32 ChainColor(double share, int alpha) {
  const auto mix = [share](int a, int b) { return static_cast<int>(a + share * (b - a)); };
  return IM_COL32(mix(190, 94), mix(90, 176), mix(255, 255), alpha);
}

void DrawAgent(const Plot& plot, const DecisionRecord& decision, const PolicyInfo& policy) {
  if (!policy.on_table) return;
  const float em = ImGui::GetFontSize();
  plot.draw().AddCircle(plot.At(decision.agent[0], decision.agent[1]), 0.5f * em, color::kGood, 0,
                        0.12f * em);
}

}  // namespace

void DrawFan(const Plot& plot, const DecisionRecord& decision, const PolicyInfo& policy, int step) {
  const DrawFunction draw = policy.on_table ? DrawWay : DrawCurves;
  const float em = ImGui::GetFontSize();
  const size_t size = decision.actions.size();
  for (int k = std::max(0, step - kTrail); k < step; ++k) {
    const double share = 1.0 - static_cast<double>(step - k) / kTrail;
    draw(plot, &decision.denoising[k * size], policy,
         ChainColor(share, static_cast<int>(10 + 80 * share * share)), 0.06f * em);
  }
  for (size_t i = 0; i + size <= decision.samples.size(); i += size) {
    draw(plot, &decision.samples[i], policy, IM_COL32(255, 190, 92, 130), 0.08f * em);
  }
  const DrawFunction draw_shown = policy.on_table ? DrawWay : DrawHues;
  draw_shown(plot, &decision.denoising[step * size], policy, color::kText,
             (policy.on_table ? 0.16f : 0.1f) * em);
  DrawAgent(plot, decision, policy);
}

void DrawChunk(const Plot& plot, const DecisionRecord& decision, const PolicyInfo& policy) {
  const DrawFunction draw = policy.on_table ? DrawWay : DrawHues;
  draw(plot, decision.actions.data(), policy, color::kText,
       (policy.on_table ? 0.16f : 0.1f) * ImGui::GetFontSize());
  DrawAgent(plot, decision, policy);
}

}  // namespace mjp::app

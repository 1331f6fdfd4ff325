#include "viewer/panels/window_steps.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

enum class Fate { kOutside, kFinal, kKept, kMoved };

ImU32 ColorOf(Fate fate) {
  switch (fate) {
    case Fate::kOutside:
      return 0;
    case Fate::kFinal:
      return color::kGood;
    case Fate::kKept:
      return IM_COL32(76, 128, 170, 255);
    case Fate::kMoved:
      return IM_COL32(150, 84, 190, 255);
  }
  return 0;
}

// What became of each step of a pass, by its residuals (steps).
std::vector<Fate> FatesOf(const float* residuals, int steps) {
  std::vector<Fate> fates(steps, Fate::kOutside);
  bool final = true;
  for (int k = 0; k < steps; ++k) {
    if (!(residuals[k] >= 0)) continue;
    final = final && residuals[k] <= 1;
    fates[k] = final ? Fate::kFinal : residuals[k] <= 1 ? Fate::kKept : Fate::kMoved;
  }
  return fates;
}

void Explain(const DecisionRecord& decision, int steps, int pass, int k, Fate fate) {
  const float residual = decision.residuals[pass * steps + k];
  const char* text = fate == Fate::kFinal  ? "final"
                     : fate == Fate::kKept ? "near enough, but not the steps before"
                                           : "evaluated again";
  ImGui::SetTooltip("pass %d, step %d: %s\nmoved by %.3g of what it may", pass + 1, k, text,
                    residual);
}

}  // namespace

void DrawWindowSteps(const DecisionRecord& decision, int steps, int marked, ImVec2 size) {
  const int passes = static_cast<int>(decision.residuals.size()) / steps;
  const float em = ImGui::GetFontSize();
  const Plot plot("windows", size, {0, static_cast<double>(steps)},
                  {static_cast<double>(passes), 0}, 1.9f * em, 1.4f * em);
  for (const int step : {0, steps - 1}) plot.TickX(step + 0.5, Format("%d", step));
  for (const int pass : {1, passes}) plot.TickY(pass - 0.5, Format("%d", pass));
  const float x = plot.At(marked + 0.5, 0).x;
  plot.draw().AddLine(ImVec2(x, plot.low().y), ImVec2(x, plot.high().y), color::kDim,
                      std::max(1.0f, 0.08f * em));
  for (int pass = 0; pass < passes; ++pass) {
    const std::vector<Fate> fates = FatesOf(&decision.residuals[pass * steps], steps);
    for (int k = 0; k < steps; ++k) {
      if (fates[k] == Fate::kOutside) continue;
      constexpr float kLeast = 2;  // pixels that a cell is wide, so that it is seen
      const ImVec2 high = plot.At(k + 1, pass + 1);
      ImVec2 low = plot.At(k, pass);
      low.x = std::max(plot.low().x, std::min(low.x, high.x - kLeast));
      const float gap = high.x - low.x > 4 && high.y - low.y > 4 ? 1.0f : 0.0f;
      plot.draw().AddRectFilled(low, ImVec2(high.x - gap, high.y - gap), ColorOf(fates[k]));
      const ImVec2 mouse = ImGui::GetIO().MousePos;
      if (plot.hovered() && mouse.x >= low.x && mouse.x < high.x && mouse.y >= low.y &&
          mouse.y < high.y) {
        Explain(decision, steps, pass, k, fates[k]);
      }
    }
  }
}

void DrawWindowLegend() {
  const float em = ImGui::GetFontSize();
  for (const auto& [fate, name] : {std::pair(Fate::kFinal, "final"), std::pair(Fate::kKept, "near"),
                                   std::pair(Fate::kMoved, "again")}) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddRectFilled(
        ImVec2(at.x, at.y + 0.2f * em), ImVec2(at.x + 0.7f * em, at.y + 0.9f * em), ColorOf(fate));
    ImGui::SetCursorScreenPos(ImVec2(at.x + 1.1f * em, at.y));
    ImGui::TextDisabled("%s", name);
  }
}

void DrawShares(const std::vector<float>& shares) {
  const float em = ImGui::GetFontSize(), width = ImGui::GetContentRegionAvail().x;
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 high(low.x + width, low.y + 2.6f * em);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(low, high, color::kPlot);
  const float most = *std::max_element(shares.begin(), shares.end());
  const float step = width / static_cast<float>(shares.size());
  const float gap = step > 4 ? 1.0f : 0.0f;
  for (size_t i = 0; i < shares.size(); ++i) {
    const float left = low.x + step * static_cast<float>(i);
    const float top = high.y - 0.92f * (high.y - low.y) * shares[i] / most;
    draw.AddRectFilled(ImVec2(left, top), ImVec2(left + step - gap, high.y),
                       i + 1 == shares.size() ? color::kText : color::kAccent);
  }
  ImGui::InvisibleButton("shares", ImVec2(width, high.y - low.y));
  if (!ImGui::IsItemHovered()) return;
  const auto i =
      std::min(shares.size() - 1, static_cast<size_t>((ImGui::GetIO().MousePos.x - low.x) / step));
  ImGui::SetTooltip("the chunk of %zu decisions ago: %.2f %% of this action", shares.size() - 1 - i,
                    100 * shares[i]);
}

}  // namespace mjp::app

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

// The figure that counts: how long the decision took, against the control period.
void DrawFigure(const DecisionRecord& decision, const UiState& ui) {
  const double total = RowMilliseconds(decision.times, kDecisionRow);
  const bool met = total <= ui.budget_ms;
  ImGui::PushFont(FigureFont());
  ImGui::PushStyleColor(ImGuiCol_Text, met ? color::kGood : color::kBad);
  ImGui::Text("%s ms", FormatMs(total).c_str());
  ImGui::PopStyleColor();
  const float line = ImGui::GetFontSize();
  ImGui::PopFont();
  ImGui::SameLine();
  const float baseline = ImGui::GetCursorPosY() + 0.72f * (line - ImGui::GetFontSize());
  ImGui::SetCursorPosY(baseline);
  const std::string share =
      Format("%.0f %% of the %.4g ms period", 100 * total / ui.budget_ms, ui.budget_ms);
  ImGui::TextDisabled("%s", Shorten(share, ImGui::GetContentRegionAvail().x).c_str());
}

// Stages end to end, against the budget where that is not far away.
void DrawStackedBar(const DecisionRecord& decision, const PolicyInfo& policy, double budget) {
  const double total = RowMilliseconds(decision.times, kDecisionRow);
  const double top = 1.08 * ScaleTop(total, budget);
  const float em = ImGui::GetFontSize();
  const Plot plot("bar", ImVec2(ImGui::GetContentRegionAvail().x, 2.9f * em), {0, top}, {0, 1}, 0,
                  1.4f * em);
  double at = 0;
  for (int row = 0; row < kDecisionRow; ++row) {
    const double length = RowMilliseconds(decision.times, row);
    if (length <= 0 || row == static_cast<int>(mjp::Stage::kPhysics)) continue;
    const ImVec2 low = plot.At(at, 1), high = plot.At(at + length, 0);
    plot.draw().AddRectFilled(low, high, RowColor(row));
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    if (plot.hovered() && mouse.x >= low.x && mouse.x < high.x) {
      ImGui::SetTooltip("%s: %s ms", RowName(row, policy), FormatMs(length).c_str());
    }
    at += length;
  }
  const double tick = TickStep(top, 5);
  for (double x = 0; x <= top; x += tick) plot.TickX(x, Format("%g ms", x));
  if (budget > top) return;
  const ImVec2 line = plot.At(budget, 0);
  plot.draw().AddLine(ImVec2(line.x, plot.low().y), ImVec2(line.x, plot.high().y), color::kWarn,
                      0.14f * em);
}

// Moves to the next cell, where `text` will end at the right.
void AlignRight(const std::string& text) {
  ImGui::TableNextColumn();
  const float width = ImGui::CalcTextSize(text.c_str()).x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - width);
}

void DrawCell(double value) {
  const std::string text = value > 0 ? FormatMs(value) : "-";
  AlignRight(text);
  ImGui::TextUnformatted(text.c_str());
}

// What the table has beside the names of the rows, from left to right.
enum class Figure { kNow, kMedian, kP95, kP99, kWorst, kPinned };

// Those that `width` screen pixels have room for: at least the first three of the list.
std::vector<Figure> FiguresFor(float width, bool pinned) {
  constexpr float kName = 6.4f, kFigure = 3.4f;  // letters
  const float room = (width / ImGui::GetFontSize() - kName) / kFigure;
  std::vector<Figure> figures = {Figure::kNow, Figure::kMedian, Figure::kWorst};
  if (pinned) figures.push_back(Figure::kPinned);
  for (const Figure wish : {Figure::kP99, Figure::kP95}) {
    if (static_cast<float>(figures.size() + 1) <= room) figures.push_back(wish);
  }
  std::sort(figures.begin(), figures.end());
  return figures;
}

const char* NameOf(Figure figure) {
  constexpr const char* kNames[] = {"now", "p50", "p95", "p99", "worst", "A"};
  return kNames[static_cast<int>(figure)];
}

void DrawWorst(int row, const RowSummary& s, const SimSnapshot& snapshot, UiState& ui) {
  const std::string worst = FormatMs(s.worst);
  AlignRight(worst);
  if (s.worst_at < 0) return;
  ImGui::PushID(row);
  if (ImGui::Selectable(worst.c_str())) ui.selected = (*snapshot.log)[s.worst_at];
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("click: show that decision");
  ImGui::PopID();
}

void DrawFigureOf(Figure figure, int row, const DecisionRecord& shown, const RowSummary& s,
                  const SimSnapshot& snapshot, UiState& ui) {
  switch (figure) {
    case Figure::kNow:
      return DrawCell(RowMilliseconds(shown.times, row));
    case Figure::kMedian:
      return DrawCell(s.median);
    case Figure::kP95:
      return DrawCell(s.p95);
    case Figure::kP99:
      return DrawCell(s.p99);
    case Figure::kWorst:
      return DrawWorst(row, s, snapshot, ui);
    case Figure::kPinned:
      return DrawCell(ui.pinned->summary[row].median);
  }
}

void DrawRow(int row, const std::vector<Figure>& figures, const DecisionRecord& shown,
             const RowSummary& summary, const SimSnapshot& snapshot, UiState& ui) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float em = ImGui::GetFontSize();
  ImGui::GetWindowDrawList()->AddRectFilled(
      ImVec2(at.x, at.y + 0.2f * em), ImVec2(at.x + 0.6f * em, at.y + 0.8f * em), RowColor(row), 2);
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + 1.15f * em);
  const char* name = RowName(row, *snapshot.policy);
  if (ImGui::Selectable(name, ui.histogram_row == row)) ui.histogram_row = row;
  for (const Figure figure : figures) DrawFigureOf(figure, row, shown, summary, snapshot, ui);
}

void DrawTable(const DecisionRecord& shown, const SimSnapshot& snapshot, UiState& ui) {
  const LogSummary summary = Summarise(*snapshot.log);
  const std::vector<Figure> figures =
      FiguresFor(ImGui::GetContentRegionAvail().x, ui.pinned.has_value());
  const int columns = static_cast<int>(figures.size()) + 1;
  if (!ImGui::BeginTable("stages", columns, ImGuiTableFlags_RowBg)) return;
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 1.9f);
  for (const Figure figure : figures) {
    ImGui::TableSetupColumn(NameOf(figure), ImGuiTableColumnFlags_WidthStretch, 1.0f);
  }
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextDisabled("ms");
  for (const Figure figure : figures) {
    AlignRight(NameOf(figure));
    ImGui::TextDisabled("%s", NameOf(figure));
  }
  for (int row = 0; row < kRowCount; ++row) {
    if (summary[row].n > 0) DrawRow(row, figures, shown, summary[row], snapshot, ui);
  }
  ImGui::EndTable();
}

}  // namespace

void DrawTimingPanel(const SimSnapshot& snapshot, UiState& ui) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  PanelTitle("Time of a decision",
             shown ? Format("decision %d, seed %u", shown->decision, shown->seed) : "");
  if (!shown) {
    ImGui::TextDisabled("%s", snapshot.policy->horizon > 0
                                  ? "The first decision is taken when the simulation plays."
                                  : "This model has no policy.");
    return;
  }
  DrawFigure(*shown, ui);
  DrawStackedBar(*shown, *snapshot.policy, ui.budget_ms);
  DrawTable(*shown, snapshot, ui);
  DrawComparison(snapshot, ui);
}

}  // namespace mjp::app

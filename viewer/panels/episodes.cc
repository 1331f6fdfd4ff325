#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace pusht {
namespace {

void DrawRow(const EpisodeRow& episode, const SimSnapshot& snapshot, UiState& ui) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool current = snapshot.seed == episode.seed;
  if (ImGui::Selectable(Format("%u", episode.seed).c_str(), current,
                        ImGuiSelectableFlags_SpanAllColumns)) {
    ui.selected = nullptr;
    ui.Ask(RestartCommand{episode.seed});
    ui.Ask(PlayCommand{true});
  }
  ImGui::TableNextColumn();
  ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(episode.success ? color::kGood : color::kBad),
                     "%s", episode.success ? "solved" : "missed");
  ImGui::TableNextColumn();
  ImGui::Text("%.2f", episode.score);
  ImGui::TableNextColumn();
  if (current && snapshot.finished) {
    const bool same = snapshot.hash == episode.hash;
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(same ? color::kGood : color::kWarn), "%s",
                       same ? "exact" : "differs");
  } else {
    ImGui::TextDisabled("%d", episode.steps);
  }
}

}  // namespace

void DrawEpisodePanel(const SimSnapshot& snapshot, UiState& ui) {
  PanelTitle("Episodes", ui.episodes.empty() ? "" : Format("%zu", ui.episodes.size()));
  if (ui.episodes.empty()) {
    ImGui::PushTextWrapPos(0);
    ImGui::TextDisabled("Drop the folder of an evaluation here to replay its episodes.");
    ImGui::PopTextWrapPos();
    return;
  }
  const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg;
  if (!ImGui::BeginTable("episodes", 4, flags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* heading : {"seed", "result", "score", "steps"}) {
    ImGui::TableSetupColumn(heading);
  }
  ImGui::TableHeadersRow();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(ui.episodes.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      DrawRow(ui.episodes[i], snapshot, ui);
    }
  }
  ImGui::EndTable();
}

}  // namespace pusht

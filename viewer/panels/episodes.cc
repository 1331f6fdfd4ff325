#include <algorithm>
#include <vector>

#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

// `replay`: the row is of an evaluation, and another run of it is compared with it.
void DrawRow(const EpisodeRow& episode, bool replay, const SimSnapshot& snapshot, UiState& ui) {
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
  const bool same = snapshot.hash == episode.hash;
  if (current && snapshot.finished && (replay || !same)) {
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(same ? color::kGood : color::kWarn), "%s",
                       same ? "exact" : "differs");
  } else {
    ImGui::TextDisabled("%d", episode.steps);
  }
}

}  // namespace

void DrawEpisodePanel(const SimSnapshot& snapshot, UiState& ui) {
  static const std::vector<EpisodeRow> kNone;
  const bool replay = !ui.episodes.empty();
  const std::vector<EpisodeRow>& here = snapshot.episodes ? *snapshot.episodes : kNone;
  const std::vector<EpisodeRow>& episodes = replay ? ui.episodes : here;
  const auto solved = std::count_if(episodes.begin(), episodes.end(),
                                    [](const EpisodeRow& episode) { return episode.success; });
  PanelTitle("Episodes",
             episodes.empty() ? "" : Format("%td of %zu solved", solved, episodes.size()));
  if (episodes.empty()) {
    ImGui::PushTextWrapPos(0);
    ImGui::TextDisabled("Those that end here. Drop the folder of an evaluation to replay its own.");
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
  clipper.Begin(static_cast<int>(episodes.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      DrawRow(episodes[i], replay, snapshot, ui);
    }
  }
  ImGui::EndTable();
}

}  // namespace mjp::app

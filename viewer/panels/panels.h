#ifndef VIEWER_PANELS_PANELS_H_
#define VIEWER_PANELS_PANELS_H_

#include "viewer/snapshot.h"
#include "viewer/ui_state.h"

// The panels: functions of the snapshot that draw into the current ImGui window and leave wishes
// in the UiState. None needs a window of the system, OpenGL or the simulation.

namespace mjp::app {

// Play, seed, speed, and how the policy runs.
void DrawControlPanel(const SimSnapshot& snapshot, UiState& ui);
// The pictures that the shown decision was made from.
void DrawPicturePanel(const SimSnapshot& snapshot, UiState& ui);
// The same over the scene, between two corners (screen pixels), where that is wished for.
void DrawLargePicturePanel(const SimSnapshot& snapshot, UiState& ui, ImVec2 low, ImVec2 high);
// Episodes of an evaluation's folder; a click replays one.
void DrawEpisodePanel(const SimSnapshot& snapshot, UiState& ui);
// Coverage over the episode's time; a click goes back there.
void DrawScorePanel(const SimSnapshot& snapshot, UiState& ui);
// The chunk at every denoising step, as a fan over the table.
void DrawDenoisingPanel(const SimSnapshot& snapshot, UiState& ui);
// The shown decision as a stacked bar, and the table of all decisions by stage.
void DrawTimingPanel(const SimSnapshot& snapshot, UiState& ui);
// Makes this run the A of A/B.
void Pin(const SimSnapshot& snapshot, UiState& ui);
// Below the table: pin this run, compare with A, export.
void DrawComparison(const SimSnapshot& snapshot, UiState& ui);
// The shown decision's stages on one clock.
void DrawTimelinePanel(const SimSnapshot& snapshot, UiState& ui);
// All decisions against the budget, and the distribution of one stage.
void DrawHistoryPanel(const SimSnapshot& snapshot, UiState& ui);
// Keys and mouse, over everything else: in the middle between two corners (screen pixels), or of
// the window where they leave it no room. While a person records, what that needs.
void DrawHelpPanel(const SimSnapshot& snapshot, const UiState& ui, ImVec2 low, ImVec2 high);

}  // namespace mjp::app

#endif  // VIEWER_PANELS_PANELS_H_

#ifndef VIEWER_DRAW_PANELS_H_
#define VIEWER_DRAW_PANELS_H_

#include "viewer/layout.h"
#include "viewer/snapshot.h"
#include "viewer/ui_state.h"

namespace mjp::app {

// Draws all panels into the current ImGui frame as MakeLayout has them, and captions and notices
// over the scene. `scale` is screen pixels per layout pixel. Returns the layout.
Layout DrawPanels(const SimSnapshot& snapshot, UiState& ui, float scale);

}  // namespace mjp::app

#endif  // VIEWER_DRAW_PANELS_H_

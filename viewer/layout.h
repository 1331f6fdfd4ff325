#ifndef VIEWER_LAYOUT_H_
#define VIEWER_LAYOUT_H_

#include <imgui.h>

#include "viewer/snapshot.h"
#include "viewer/ui_state.h"

namespace mjp::app {

// A part of the window, screen pixels, y down.
struct Area {
  float x = 0, y = 0, width = 0, height = 0;
  bool Contains(ImVec2 p) const {
    return p.x >= x && p.x < x + width && p.y >= y && p.y < y + height;
  }
};

// Draws all panels into the current ImGui frame, and the captions over the scene. `scale` is
// screen pixels per layout pixel. Returns the area left for the scene.
Area DrawPanels(const SimSnapshot& snapshot, UiState& ui, float scale);

}  // namespace mjp::app

#endif  // VIEWER_LAYOUT_H_

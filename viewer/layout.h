#ifndef VIEWER_LAYOUT_H_
#define VIEWER_LAYOUT_H_

#include <imgui.h>

#include <vector>

namespace mjp::app {

// A part of the window, screen pixels, y down.
struct Area {
  float x = 0, y = 0, width = 0, height = 0;
  bool Contains(ImVec2 p) const {
    return p.x >= x && p.x < x + width && p.y >= y && p.y < y + height;
  }
};

// The smallest window that is laid out, layout pixels.
inline constexpr int kLeastWidth = 480, kLeastHeight = 300;

enum class Panel {
  kControl,
  kPictures,
  kEpisodes,
  kTiming,
  kTimeline,
  kHistory,
  kScore,
  kDenoising
};

// Panels that stay together: how the policy runs, what a decision takes, what it decides.
enum class PanelGroup { kRun, kTiming, kChunk };
inline constexpr int kPanelGroupCount = 3;

// A part of the window that is kept for panels.
struct Dock {
  Area area;
  std::vector<PanelGroup> groups;  // more than one: tabs in `tabs` choose the one that is shown
  Area tabs;                       // above `area`; empty: no tabs
  bool row = false;                // its panels stand side by side, not one above the other
};

// Where all that is in a window stands. Nothing overlaps anything else.
struct Layout {
  Area captions, scene;
  std::vector<Dock> docks;  // each group is in one of them
};

// The layout of a window of `width` x `height` screen pixels, at `scale` screen pixels per layout
// pixel: three columns where there is room, else the scene beside or above one column with tabs.
// The scene has a quarter of any window that is not smaller than the smallest.
Layout MakeLayout(float width, float height, float scale);

// A panel of a dock, and where it stands there: `area` is relative to the dock's, and reaches
// below it where the dock must be scrolled.
struct PanelPlace {
  Panel panel;
  Area area;
};

// The panels of `group`, which the dock has, from the first to the last. `scrollbar`: the width
// that is left for one where the panels need more height than the dock has.
std::vector<PanelPlace> PlacePanels(const Dock& dock, PanelGroup group, float scale,
                                    float scrollbar);

// The group that a dock shows if `chosen` was the last one to be asked for.
PanelGroup ShownGroup(const Dock& dock, PanelGroup chosen);

}  // namespace mjp::app

#endif  // VIEWER_LAYOUT_H_

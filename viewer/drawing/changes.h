#ifndef VIEWER_DRAWING_CHANGES_H_
#define VIEWER_DRAWING_CHANGES_H_

#include <imgui.h>

#include <cstdint>
#include <vector>

namespace mjp::app {

// 64 bits that differ wherever bytes do, for all practical purposes; `seed` is those of what came
// before.
uint64_t LookOf(const void* bytes, size_t size, uint64_t seed = 0);

// Finds what of the window looks other than in the frame before, so that the rest stays as it is.
// The parts are those of a Layout: the scene with its captions, then each dock.
class Changes {
 public:
  // Of a frame whose panels are `data`, as DrawPanels made them for a layout of `docks` docks;
  // `scene` is the look of the scene (LookOf). One entry a part, the scene first. All of them,
  // where something is drawn over several parts, or was in the frame before.
  std::vector<bool> Find(const ImDrawData& data, size_t docks, uint64_t scene);
  // Makes the next frame differ everywhere.
  void Forget() { looks_.clear(); }

  // The part that a list of the frame is drawn in; -1: over several.
  static int PartOf(const ImDrawList& list);

 private:
  std::vector<uint64_t> looks_;  // of the frame before, one a part
  bool covered_ = false;         // something was drawn over several parts
};

}  // namespace mjp::app

#endif  // VIEWER_DRAWING_CHANGES_H_

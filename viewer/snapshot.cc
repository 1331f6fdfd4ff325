#include "viewer/snapshot.h"

namespace mjp::app {

std::vector<uint8_t> PicturesOf(const DecisionRecord& record) {
  if (record.scenes.empty()) return record.frames;
  const mjp::SceneDrawer& drawer = *record.drawer;
  std::vector<uint8_t> pictures(record.scenes.size() / drawer.scene_bytes() *
                                drawer.picture_bytes());
  drawer.DrawOnCpu(record.scenes, pictures);
  return pictures;
}

}  // namespace mjp::app

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

bool SameDecision(const DecisionRecord& a, const DecisionRecord& b) {
  return a.seed == b.seed && a.decision == b.decision && a.step == b.step && a.qpos == b.qpos &&
         a.state == b.state && a.environment == b.environment;
}

}  // namespace mjp::app

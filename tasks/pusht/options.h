#ifndef TASKS_PUSHT_OPTIONS_H_
#define TASKS_PUSHT_OPTIONS_H_

#include "tasks/pusht/physics/state.h"

namespace mjp::app {

enum class PhysicsKind { kMujoco, kChipmunk };
enum class RendererKind { kRaster, kMujoco };

// How Push-T is simulated, drawn and judged, and what of its own makes it harder.
struct PushtOptions {
  RendererKind renderer = RendererKind::kRaster;
  PhysicsKind physics = PhysicsKind::kMujoco;
  double push = 0;  // displacement of the block by a push, pixels
  int pushes = 0;   // at random moments of an episode; 0: one every two seconds, to the end
  double success_coverage = kSuccessCoverage;
  double end_coverage = -1;  // an episode goes on until coverage exceeds this, success or not
};

}  // namespace mjp::app

#endif  // TASKS_PUSHT_OPTIONS_H_

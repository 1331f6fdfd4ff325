#ifndef APPS_BENCH_SCENES_H_
#define APPS_BENCH_SCENES_H_

#include <vector>

#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/pictures/raster_source.h"

namespace mjp::app {

// The benchmark's first `count` starts as flat scenes.
inline std::vector<mjp::FlatScene> StartScenes(int count) {
  std::vector<mjp::FlatScene> scenes;
  for (int seed = 0; seed < count; ++seed)
    scenes.push_back(ToFlatScene(BenchmarkStart(static_cast<uint32_t>(seed))));
  return scenes;
}

}  // namespace mjp::app

#endif  // APPS_BENCH_SCENES_H_

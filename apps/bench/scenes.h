#ifndef APPS_BENCH_SCENES_H_
#define APPS_BENCH_SCENES_H_

#include <vector>

#include "task/raster_source.h"
#include "task/reset.h"

namespace pusht {

// The benchmark's first `count` starts as flat scenes.
inline std::vector<dp::FlatScene> StartScenes(int count) {
  std::vector<dp::FlatScene> scenes;
  for (int seed = 0; seed < count; ++seed)
    scenes.push_back(ToFlatScene(BenchmarkStart(static_cast<uint32_t>(seed))));
  return scenes;
}

}  // namespace pusht

#endif  // APPS_BENCH_SCENES_H_

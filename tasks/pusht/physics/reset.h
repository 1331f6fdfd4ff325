#ifndef TASKS_PUSHT_PHYSICS_RESET_H_
#define TASKS_PUSHT_PHYSICS_RESET_H_

#include <cstdint>

#include "tasks/pusht/physics/state.h"

namespace mjp::app {

// The benchmark's start of the episode with this seed, before the legacy rule: agent in
// [50, 450)^2, block in [100, 400)^2, whole pixels; angle normal with deviation 2 pi about -pi.
State BenchmarkDraw(uint32_t seed);

// The legacy rule: the benchmark sets the position first, then turns the block about its centre of
// gravity, so that the origin moves. Returns where the block really starts.
State ApplyLegacyRule(const State& draw);

// The start of the benchmark's episode `seed`, ready for Scene::SetStart.
inline State BenchmarkStart(uint32_t seed) { return ApplyLegacyRule(BenchmarkDraw(seed)); }

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PHYSICS_RESET_H_

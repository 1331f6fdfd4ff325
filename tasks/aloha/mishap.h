#ifndef TASKS_ALOHA_MISHAP_H_
#define TASKS_ALOHA_MISHAP_H_

#include <cstdint>

#include "tasks/aloha/expert.h"
#include "tasks/aloha/transfer_cube.h"

namespace mjp::app {

// What goes wrong when a learner plays.
enum class Mishap {
  kNoise,  // the arms stray from their ways, and the hands from their openings
  kDrop,   // the right hand opens while it carries the cube
  kPush,   // the cube is hit and slides
  kMiss,   // the right hand closes beside the cube, or on its edge
};
inline constexpr int kMishaps = 4;

const char* NameOf(Mishap mishap);

// Starts `simulation` from `seed` and lets `expert` play up to the mishap, which `seed` places and
// sizes. Returns whether the cube had not been handed over before.
bool PlayMishap(Mishap mishap, uint32_t seed, TransferCube& simulation, TransferExpert& expert);

}  // namespace mjp::app

#endif  // TASKS_ALOHA_MISHAP_H_

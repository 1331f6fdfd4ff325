#ifndef TASKS_PUSHT_REPLAY_H_
#define TASKS_PUSHT_REPLAY_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/npy.h"
#include "tasks/pusht/physics/batch_physics.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {

// Recorded episodes: E starts and the targets of their control steps, one episode after another.
struct Recording {
  std::vector<State> starts;    // (E), legacy rule already applied
  std::vector<Target> actions;  // (ends.back()), pixels
  std::vector<int64_t> ends;    // (E): one past each episode's last action
};

// Builds a recording from arrays: starts (E, 5) before the legacy rule, actions (A, 2), ends (E).
// Throws Error where shapes do not fit, ends do not ascend to A, or a number is not finite.
Recording MakeRecording(const NpyArray& starts, const NpyArray& actions, const NpyArray& ends);

// What a replay gave.
struct Replay {
  // For each episode the state before each of its actions, then its last state: episode e has
  // (length + 1) rows, A + E in all.
  std::vector<State> states;
  std::vector<std::string> failures;  // (E): why the episode's states are not to be trusted, or ""
};

// Replays every episode in the Push-T scene `model`. Results do not depend on threads (<= 0: all).
Replay ReplayInMujoco(const mjModel* model, const Recording& recording, int threads);

// States as an array of doubles (N, 5): agent x, y, block x, y, angle as it is, not wrapped.
NpyArray StatesToNpy(std::span<const State> states);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_REPLAY_H_

#ifndef TASKS_PUSHT_PHYSICS_CHIPMUNK_ORACLE_H_
#define TASKS_PUSHT_PHYSICS_CHIPMUNK_ORACLE_H_

#include <memory>

#include "tasks/pusht/physics/state.h"

namespace mjp::app {

// One Push-T simulation in the benchmark's original engine, Chipmunk 7.0.3: the yardstick of the
// MuJoCo scene. Built where libchipmunk is found. Source of the constants and of their order: the
// benchmark's environment (docs/ARCHITECTURE.md names it).
class ChipmunkOracle {
 public:
  ChipmunkOracle();
  ~ChipmunkOracle();
  ChipmunkOracle(ChipmunkOracle&&) noexcept;
  ChipmunkOracle& operator=(ChipmunkOracle&&) noexcept;

  // Starts an episode at `start` (legacy rule already applied), settled for one physics step.
  void Reset(const State& start);

  // Advances by one control step with the agent drawn towards (x, y), pixels. Needs a Reset.
  void Step(double target_x, double target_y);

  // Moves the block, pixels.
  void Push(double dx, double dy);

  State Read() const;

 private:
  class World;
  std::unique_ptr<World> world_;
};

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PHYSICS_CHIPMUNK_ORACLE_H_

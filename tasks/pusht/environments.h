#ifndef TASKS_PUSHT_ENVIRONMENTS_H_
#define TASKS_PUSHT_ENVIRONMENTS_H_

#include <mujoco/mujoco.h>

#include <memory>
#include <span>
#include <string>

#include "tasks/pusht/options.h"
#include "tasks/pusht/physics/batch_physics.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {

// Simulations of Push-T side by side, whatever the physics engine.
class Environments {
 public:
  virtual ~Environments() = default;

  // Starts simulation i; forgets its failure.
  virtual void Start(int i, const State& start) = 0;
  // Advances the simulations `ids` (distinct) by one control step towards targets (ids.size()).
  virtual void Step(std::span<const int> ids, std::span<const Target> targets) = 0;
  virtual State Read(int i) const = 0;
  // Writes the position vector of the MuJoCo model for simulation i into qpos (nq).
  virtual void ReadQpos(int i, mjtNum* qpos) const = 0;
  // Moves the block of simulation i, pixels.
  virtual void Push(int i, double dx, double dy) = 0;
  // Why simulation i is not to be trusted any more, or "".
  virtual std::string Failure(int i) const = 0;
};

// Throws Error where the engine was not built in.
void CheckPhysics(PhysicsKind kind);

// `model` is Push-T in MuJoCo (it also names what ReadQpos fills). Throws Error where the engine
// was not built in.
std::unique_ptr<Environments> MakeEnvironments(PhysicsKind kind, const mjModel* model, int count,
                                               int threads);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_ENVIRONMENTS_H_

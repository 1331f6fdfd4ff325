#ifndef TASKS_PUSHT_PHYSICS_SCENE_H_
#define TASKS_PUSHT_PHYSICS_SCENE_H_

#include <mujoco/mujoco.h>

#include "tasks/physics/model.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {

// Pixels of the benchmark per unit of length of the model.
inline constexpr double kPixelsPerUnit = 100;

// Push-T in a model: joints ax, ay (agent), bx, by, bt (block) and actuators ax, ay, found by name.
// Holds addresses only, so one Scene serves every mjData of its model, from any thread.
class Scene {
 public:
  // Throws Error naming the joint or actuator that `model` lacks, or the option that differs from
  // the benchmark's (timestep). `model` must outlive the scene.
  explicit Scene(const mjModel* model);

  const mjModel* model() const { return model_; }

  // The state that a position vector qpos (nq) describes; the angle is not wrapped.
  State FromQpos(const mjtNum* qpos) const;
  // Writes `state` into qpos (nq); entries of other joints stay.
  void ToQpos(const State& state, mjtNum* qpos) const;
  // Writes the agent's target (pixels) into a control vector ctrl (nu).
  void ToCtrl(double target_x, double target_y, mjtNum* ctrl) const;

  State Read(const mjData* data) const { return FromQpos(data->qpos); }
  void SetTarget(double x, double y, mjData* data) const { ToCtrl(x, y, data->ctrl); }

  // Moves the block within a position vector qpos (nq), pixels.
  void PushBlock(double dx, double dy, mjtNum* qpos) const;

  // Starts an episode at `start` (legacy rule already applied): places agent and block, holds the
  // agent with its control, settles for one physics step with sensors off, then sets time back to
  // 0 with plugins reset, so that a policy first acts on the settled state.
  void SetStart(const State& start, mjData* data) const;

 private:
  const mjModel* model_;
  int agent_x_, agent_y_, block_x_, block_y_, block_angle_;  // addresses in qpos
  int target_x_, target_y_;                                  // addresses in ctrl
};

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PHYSICS_SCENE_H_

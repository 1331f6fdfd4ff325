#ifndef TASKS_PUSHT_PHYSICS_BATCH_PHYSICS_H_
#define TASKS_PUSHT_PHYSICS_BATCH_PHYSICS_H_

#include <mujoco/mjbatch.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {

// Where the agent shall go, pixels.
struct Target {
  double x = 0, y = 0;
};

// Many Push-T simulations on a pool of threads (MuJoCo's own, mjbatch.h). Every simulation gives
// the bits of a plain loop over mj_step, whatever the threads and its neighbours do. Not
// thread-safe: one call at a time per object.
class BatchPhysics {
 public:
  // `model` is copied, without MuJoCo's automatic reset. threads <= 0: one per core. Throws Error
  // where the model is not Push-T's (see Scene) or the batch cannot be made.
  BatchPhysics(const mjModel* model, int count, int threads);

  int count() const { return mjb_nsim(batch_.get()); }
  const mjModel* model() const { return model_.get(); }

  // Starts simulation `i` at `start`, as Scene::SetStart does, with its failure forgotten.
  void Reset(int i, const State& start);

  // Advances the simulations `ids` (distinct) by one control step towards targets (ids.size()).
  void Step(std::span<const int> ids, std::span<const Target> targets);

  // State of simulation i after its last step.
  State Read(int i) const;

  // Writes the position vector of simulation i into qpos (nq).
  void ReadQpos(int i, mjtNum* qpos) const;

  // Moves the block of simulation i, pixels.
  void Push(int i, double dx, double dy);

  // Why simulation i is not to be trusted any more (it diverged, its target was not finite), or "".
  const std::string& Failure(int i) const { return failures_[i]; }

 private:
  struct BatchDeleter {
    void operator()(mjBatch* batch) const { mjb_deleteBatch(batch); }
  };
  mjtNum* Row(int i) const;
  std::string FindFailure(int i) const;

  ModelPtr model_;
  Scene scene_;
  DataPtr scratch_;  // where starts settle
  std::unique_ptr<mjBatch, BatchDeleter> batch_;
  int qpos_, ctrl_;  // offsets in a state row
  std::vector<std::string> failures_;
  std::vector<int> live_;  // of the current Step
};

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PHYSICS_BATCH_PHYSICS_H_

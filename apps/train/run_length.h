#ifndef APPS_TRAIN_RUN_LENGTH_H_
#define APPS_TRAIN_RUN_LENGTH_H_

#include "apps/train/recipe.h"
#include "apps/train/run_state.h"
#include "base/error.h"

// How long a training run is and how far it has come: the same for every kind of run.

namespace mjp::app {

// Thrown where a stop comes before there is a run to save.
class Stopped : public Error {
 public:
  Stopped() : Error(ExitCode::kRetryable, "stopped; start the same command again to go on") {}
};

// Throws Error(kUsage) unless exactly one of options.steps and options.seconds is given.
void CheckLength(const TrainOptions& options);

// Share of the whole training that is done, from 0; 1 or more: complete.
double ShareDone(const TrainOptions& options, const RunProgress& done);

// Throws Error(kRetryable) where the loss of a step is not finite.
void CheckLoss(double loss, int64_t step);

// Counts the seconds of training into `done`. What a GPU's libraries do before the first border of
// the log is not counted.
class TrainingClock {
 public:
  explicit TrainingClock(RunProgress& done) : done_(done) {}

  // Before the first step, and before one that follows a pause.
  void Start();
  // After a step; `border`: the log gets a line.
  void Step(bool border);
  // Seconds since the last step that are no training.
  void Skip(double seconds) { begin_ += seconds; }

 private:
  RunProgress& done_;
  double begin_ = 0;
  bool runs_ = false;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_RUN_LENGTH_H_

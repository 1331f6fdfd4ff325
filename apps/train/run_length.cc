#include "apps/train/run_length.h"

#include <cmath>
#include <string>

#include "base/error.h"
#include "policy/timing.h"

namespace mjp::app {

void CheckLength(const TrainOptions& options) {
  if ((options.steps > 0) != (options.seconds > 0)) return;
  throw Error(ExitCode::kUsage, "give either --steps or --seconds");
}

double ShareDone(const TrainOptions& options, const RunProgress& done) {
  if (options.steps > 0) return static_cast<double>(done.step) / static_cast<double>(options.steps);
  return done.seconds / options.seconds;
}

void CheckLoss(double loss, int64_t step) {
  if (std::isfinite(loss)) return;
  throw Error(ExitCode::kRetryable,
              "the loss is not finite at step " + std::to_string(step) +
                  "; start the same command again, or with a lower --learning-rate");
}

void TrainingClock::Start() { begin_ = Now() - done_.seconds; }

void TrainingClock::Step(bool border) {
  if (border && !runs_) Start();
  runs_ |= border;
  if (runs_) done_.seconds = Now() - begin_;
}

}  // namespace mjp::app

#ifndef APPS_TRAIN_RUN_STATE_H_
#define APPS_TRAIN_RUN_STATE_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>

#include "apps/train/optimisation/optimizer.h"
#include "tasks/results/statistics.h"

namespace mjp::app {

// Where a training run stands, beside what the optimiser holds.
struct RunProgress {
  int64_t step = 0;
  double seconds = 0;  // spent training, over all runs that continued each other
  // Of a round's episodes, those that succeeded: the best round's. A state of an earlier build does
  // not say of how many: best.n is 0.
  Proportion best;
  // Rounds that were played, or learnt from where a student is distilled. A state of an earlier
  // build does not say: 0.
  int rounds = 0;
};

// Writes everything a killed run needs to go on (weights, average, moments, progress, the state of
// the device's generator) as one safetensors file with its checksum, atomically. `prediction` is
// what the network tells, which its weights do not say; `prefix`: of a training with
// --prefix-share. Throws Error(kRetryable) for values that are not finite: the file stays as it
// was.
void SaveRunState(const std::string& path, const Optimizer& optimizer, const RunProgress& progress,
                  const at::Device& device, const std::string& prediction, bool prefix = false);

// Whether a run was saved there. A link that leads nowhere is a state that cannot be read.
bool HasRunState(const std::string& path);

// Puts a run back to where SaveRunState left it. Throws Error if the file is damaged, not of this
// network, of one that tells something else, or of a training with another `prefix` (none: of no
// matter). A state of an earlier build does not say that: the checkpoint beside it does. Where
// there is none, the run goes on, and stderr says so.
RunProgress LoadRunState(const std::string& path, Optimizer& optimizer, const at::Device& device,
                         const std::string& prediction, std::optional<bool> prefix = {});

// Seeds the device's generator.
void SeedGenerator(const at::Device& device, uint64_t seed);

}  // namespace mjp::app

#endif  // APPS_TRAIN_RUN_STATE_H_

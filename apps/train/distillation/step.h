#ifndef APPS_TRAIN_DISTILLATION_STEP_H_
#define APPS_TRAIN_DISTILLATION_STEP_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "apps/train/data/dataset.h"
#include "apps/train/distillation/teacher.h"
#include "apps/train/network/network.h"
#include "apps/train/optimisation/captured_step.h"
#include "apps/train/optimisation/optimizer.h"
#include "apps/train/optimisation/training_step.h"

namespace mjp::app {

// Means since the last call of TakeLosses().
struct DistillationLosses {
  double loss = 0;
  double distance = 0;  // from the teacher's actions, pixels: mean of absolute values
};

// One step of distillation: observations are drawn from the data set, the teacher makes chunks of
// fresh noise and undisturbed pictures, and the student learns to make the same in one pass, from
// pictures that may be disturbed. The map from noise to actions is learnt, not the mean of actions,
// so a student keeps the teacher's choices: direct regression of the chain's end, as in Luhman and
// Luhman 2021 (knowledge distillation in iterative generative models).
class DistillationStep {
 public:
  // Of `options` batch, draws, reflect and augmentation count. All else must outlive the step.
  DistillationStep(const Teacher& teacher, const mjp::UnetPolicyConfig& student,
                   const Network& network, const Dataset& dataset, Parameters& parameters,
                   Optimizer& optimizer, const StepOptions& options);
  DistillationStep(const DistillationStep&) = delete;
  DistillationStep& operator=(const DistillationStep&) = delete;

  void Run();
  DistillationLosses TakeLosses();

 private:
  void Body();
  at::Tensor Loss();

  const Teacher& teacher_;
  const mjp::UnetPolicyConfig& config_;
  const Network& network_;
  const Dataset& dataset_;
  Optimizer& optimizer_;
  StepOptions options_;
  at::ScalarType type_;
  at::Tensor timestep_;  // the student's: (1), int64
  at::Tensor sums_;      // (2): loss, distance
  int64_t summed_ = 0;
  CapturedStep step_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_DISTILLATION_STEP_H_

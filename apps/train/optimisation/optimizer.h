#ifndef APPS_TRAIN_OPTIMISATION_OPTIMIZER_H_
#define APPS_TRAIN_OPTIMISATION_OPTIMIZER_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "apps/train/optimisation/parameters.h"
#include "apps/train/optimisation/ranks.h"

namespace mjp::app {

struct OptimizerOptions {
  double learning_rate = 5e-4;
  double final_fraction = 0.01;  // of the learning rate, at the end of the cosine
  double beta1 = 0.95, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 1e-4;  // on matrices
  double clip_norm = 1.0;      // of the whole gradient
  int64_t warmup_steps = 300;
  double average_decay = 0.999;  // of the moving average, reached as (1 + n) / (10 + n)
};

// AdamW over the flat parameter vector, with clipping by the global norm and a moving average.
// What changes from step to step is a tensor, so that a CUDA graph can replay Update(). Several
// ranks take the step of their mean gradient, all the same one.
class Optimizer {
 public:
  // All arguments must outlive the optimiser.
  Optimizer(Parameters& parameters, const OptimizerOptions& options, const Ranks& ranks);

  // Sets learning rate and average for step `step` (from 0) at `progress` (0 to 1) of the training;
  // to be called before each Update(), outside a graph.
  void SetStep(int64_t step, double progress);
  double learning_rate() const { return learning_rate_; }

  // One step along parameters.gradient(), which it then clears.
  void Update();

  const Parameters& parameters() const { return parameters_; }
  const at::Tensor& average() const { return average_; }              // (P)
  const at::Tensor& gradient_norm() const { return gradient_norm_; }  // scalar, before clipping

  // Everything a resumed run needs, in place: master weights, average and both moments.
  std::vector<at::Tensor> State() const;
  void Restore(const std::vector<at::Tensor>& state);

 private:
  Parameters& parameters_;
  OptimizerOptions options_;
  const Ranks& ranks_;
  double learning_rate_ = 0;
  at::Tensor average_, first_moment_, second_moment_;  // (P)
  at::Tensor step_;                                    // scalar, counts Update()
  at::Tensor schedule_;                                // (2): learning rate, 1 - average's decay
  at::Tensor gradient_norm_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_OPTIMISATION_OPTIMIZER_H_

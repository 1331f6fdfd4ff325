#ifndef APPS_TRAIN_OPTIMISATION_TRAINING_STEP_H_
#define APPS_TRAIN_OPTIMISATION_TRAINING_STEP_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "apps/train/data/dataset.h"
#include "apps/train/data/pictures.h"
#include "apps/train/network/network.h"
#include "apps/train/optimisation/captured_step.h"
#include "apps/train/optimisation/optimizer.h"

namespace mjp::app {

inline constexpr int kBlockCorners = 6;  // of the T: what the auxiliary head reads off a picture

struct StepOptions {
  int64_t batch = 1024;           // observations
  int64_t draws = 4;              // (timestep, noise) pairs for each
  double auxiliary_weight = 1.0;  // of the corner loss
  double auxiliary_beta = 0.02;   // where its smooth L1 turns linear, in units of 256 pixels
  bool reflect = false;
  bool flow = false;        // flow matching in place of diffusion; of a transformer alone
  double prefix_share = 0;  // of the draws, whose first actions are known; 0: of late rows, too
  PictureAugmentation augmentation;
};

// Means since the last call of TakeLosses().
struct Losses {
  double diffusion = 0, auxiliary = 0, gradient_norm = 0;
};

// One step of training, from drawing rows to the new weights.
class TrainingStep {
 public:
  // All arguments must outlive the step.
  TrainingStep(const mjp::UnetPolicyConfig& config, const Network& network, const Dataset& dataset,
               Parameters& parameters, Optimizer& optimizer, const StepOptions& options);
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  void Run();
  Losses TakeLosses();

 private:
  // What the network sees and has to tell of chunks, and when.
  struct Draw {
    at::Tensor noisy, t, target;
  };

  void Body();
  at::Tensor Loss();
  Draw DrawDiffusion(const at::Tensor& clean) const;
  Draw DrawFlow(const at::Tensor& clean) const;

  const mjp::UnetPolicyConfig& config_;
  const Network& network_;
  const Dataset& dataset_;
  Optimizer& optimizer_;
  StepOptions options_;
  at::ScalarType type_;
  at::Tensor signal_, sigma_;  // (train_steps): sqrt of alphas_cumprod, and of 1 - it
  at::Tensor sums_;            // (3): diffusion loss, auxiliary loss, gradient norm
  int64_t summed_ = 0;
  CapturedStep step_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_OPTIMISATION_TRAINING_STEP_H_

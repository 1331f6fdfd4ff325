#ifndef APPS_TRAIN_IMITATION_STEP_H_
#define APPS_TRAIN_IMITATION_STEP_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "apps/train/data/pictures.h"
#include "apps/train/data/recorded_frames.h"
#include "apps/train/network/network.h"
#include "apps/train/optimisation/captured_step.h"
#include "apps/train/optimisation/optimizer.h"

namespace mjp::app {

struct ImitationStepOptions {
  int64_t batch = 64;  // observations
  int64_t draws = 1;   // (timestep, noise) pairs for each
  PictureAugmentation augmentation;
};

// One step of training on recorded frames, from drawing them to the new weights: the loss of
// LeRobot's DiffusionPolicy. Observations before an episode's first frame and actions after its
// last one repeat these; the last frames of an episode, which would teach little else, begin no
// sample (LeRobot's drop_n_last_frames).
class ImitationStep {
 public:
  // Moves all frames to the device. The other arguments must outlive the step. Throws Error where
  // no episode is long enough.
  ImitationStep(const UnetPolicyConfig& config, const NormalizerStats& stats,
                const Network& network, const RecordedFrames& frames, Parameters& parameters,
                Optimizer& optimizer, const ImitationStepOptions& options);
  ImitationStep(const ImitationStep&) = delete;
  ImitationStep& operator=(const ImitationStep&) = delete;

  int64_t samples() const { return starts_.size(0); }       // to train on
  int64_t held_out() const { return validation_.size(0); }  // to look at

  void Run();
  // The mean since the last call.
  double TakeLoss();
  // The loss of the averaged weights on held-out samples, at most 256 of them, with the same noise
  // each time; NaN where there are none.
  double ValidationLoss();

 private:
  void Body();
  void ChooseSamples(const RecordedFrames& frames);
  at::Tensor Observations(const at::Tensor& where, bool training) const;
  at::Tensor Pictures(const at::Tensor& frames, size_t camera, bool training) const;
  at::Tensor Loss(const at::Tensor& where, const at::Tensor& t, const at::Tensor& noise,
                  bool training) const;

  const UnetPolicyConfig& config_;
  const Network& network_;
  Parameters& parameters_;
  Optimizer& optimizer_;
  ImitationStepOptions options_;
  at::Device device_;
  at::ScalarType type_;
  std::vector<at::Tensor> pictures_;         // of each camera: u8 (P, height, width, 3)
  at::Tensor state_, environment_, action_;  // (F, numbers), normalised
  at::Tensor first_, last_;                  // (F): the frames of the episode, int64
  at::Tensor picture_of_;                    // (F): which picture a frame has, int64
  at::Tensor starts_, validation_;           // frames that begin a sample, int64
  at::Tensor validation_t_, validation_noise_;
  at::Tensor signal_, sigma_;  // (train_steps): sqrt of alphas_cumprod, and of 1 - it
  at::Tensor sum_;             // of losses
  int64_t summed_ = 0;
  CapturedStep step_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_IMITATION_STEP_H_

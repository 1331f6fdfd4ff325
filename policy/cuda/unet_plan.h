#ifndef POLICY_CUDA_UNET_PLAN_H_
#define POLICY_CUDA_UNET_PLAN_H_

#include <vector>

#include "policy/cuda/device_unet.h"

namespace dp {

// The launches of one U-Net pass over `rows` rows (x_t, t), each of environment row / rows_per_env,
// and their memory.
class UnetPlan {
 public:
  UnetPlan(const DeviceUnet& unet, Format format, int horizon, int rows, int rows_per_env,
           DeviceArena& arena);

  void* input() const { return input_; }  // (rows, horizon, input_pitch), storage
  int input_pitch() const { return input_pitch_; }
  float* output() const { return output_; }       // (rows, horizon, action_dim)
  void* mish_cond() const { return mish_cond_; }  // (environments, padded cond), storage

  // Enqueues what depends on the condition alone: once per decision.
  void RunCondition(cudaStream_t stream) const;
  // Enqueues one pass; row_step (rows) holds each row's timestep, in device memory.
  void RunPass(const int* row_step, cudaStream_t stream) const;

 private:
  struct Activation1d {
    const void* data = nullptr;
    const void* data2 = nullptr;  // the channels from `first` on, where two are concatenated
    int first = 0, channels = 0, length = 0;
  };
  Activation1d Block(const DeviceBlock1d& block, const Activation1d& in);
  Activation1d Resample(const DeviceConv& conv, const Activation1d& in);
  ConvArgs Convolve(const DeviceConv& conv, const Activation1d& in, int out_length, void* y) const;
  void* Take(int length, int channels);

  const DeviceUnet& unet_;
  Format format_;
  int rows_, rows_per_env_;
  DeviceArena& arena_;
  void *input_ = nullptr, *mish_cond_ = nullptr, *scratch_[3] = {};
  float *output_ = nullptr, *film_cond_ = nullptr;
  int input_pitch_ = 0;
  ConvArgs condition_;
  std::vector<Op> pass_;
};

}  // namespace dp

#endif  // POLICY_CUDA_UNET_PLAN_H_

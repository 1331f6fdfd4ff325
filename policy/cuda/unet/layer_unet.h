#ifndef POLICY_CUDA_UNET_LAYER_UNET_H_
#define POLICY_CUDA_UNET_LAYER_UNET_H_

#include <vector>

#include "policy/cuda/denoise/network_pass.h"
#include "policy/cuda/unet/device_unet.h"

namespace mjp {

// The pass of any batch: a convolution and a normalisation in turn.
class LayerUnet final : public NetworkPass {
 public:
  // Row r is of environment r / rows_per_env. `conditioning`: of another plan, shared with it.
  LayerUnet(const DeviceUnet& unet, Format format, int horizon, int rows, int rows_per_env,
            DeviceArena& arena, const FilmConditioning* conditioning = nullptr);

  void* input() const override { return input_; }
  int input_pitch() const override { return input_pitch_; }
  float* output() const override { return output_; }
  const FilmConditioning& conditioning() const override { return conditioning_; }
  void RunPass(const int* row_step, cudaStream_t stream) const override;
  const std::vector<Op>& ops() const { return pass_; }  // of a pass, without row_step

 private:
  struct Activation1d {
    const void* data = nullptr;
    const void* data2 = nullptr;  // the channels from `first` on, where two are concatenated
    int first = 0, channels = 0, length = 0;
  };
  static Activation1d Concatenated(const Activation1d& x, const Activation1d& skip);
  Activation1d Block(const DeviceBlock1d& block, const Activation1d& in);
  Activation1d Resample(const DeviceConv& conv, const Activation1d& in);
  ConvArgs Convolve(const DeviceConv& conv, const Activation1d& in, int out_length, void* y) const;
  void* Take(int length, int channels);

  Format format_;
  int rows_;
  DeviceArena& arena_;
  FilmConditioning conditioning_;
  void *input_ = nullptr, *scratch_[3] = {};
  float* output_ = nullptr;
  int input_pitch_ = 0;
  std::vector<Op> pass_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_LAYER_UNET_H_

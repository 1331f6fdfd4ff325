#ifndef POLICY_CUDA_UNET_NORM_CONV_UNET_H_
#define POLICY_CUDA_UNET_NORM_CONV_UNET_H_

#include <vector>

#include "policy/cuda/denoise/network_pass.h"
#include "policy/cuda/unet/film.h"
#include "policy/unet/unet_walk.h"

namespace mjp {

struct NormConvBlock {
  // conv1 carries the block's 1x1 shortcut; in_c 0: the first block's, NormConvUnet::first
  DeviceNormConv conv1, conv2;
  DeviceNorm norm1, norm2;
  FilmTerms film;
};

// The U-Net's weights in the layout of norm_conv.
struct NormConvUnet {
  std::vector<UnetStep<NormConvBlock, DeviceNormConv>> steps;
  DeviceNormConv final_conv;
  DeviceNorm final_norm;
  DeviceFilm film;
  FirstConvArgs first;  // of the first block
  HeadArgs head;
};

// Packs `checkpoint`'s U-Net; with `measuring`, sizes alone.
NormConvUnet LoadNormConvUnet(LayerLoader& loader, const Checkpoint& checkpoint, bool measuring);

// The pass of small batches: one launch per convolution.
class NormConvUnetPlan final : public NetworkPass {
 public:
  // Row r is of environment r / rows_per_env. `conditioning`: of another plan, shared with it.
  NormConvUnetPlan(const NormConvUnet& unet, Format format, int horizon, int rows, int rows_per_env,
                   DeviceArena& arena, const FilmConditioning* conditioning = nullptr);

  // Whether the kernels run every layer for so many rows: a function of shapes alone.
  static bool Supports(const NormConvUnet& unet, Format format, int horizon, int rows);

  void* input() const override { return input_; }
  int input_pitch() const override { return input_pitch_; }
  float* output() const override { return output_; }
  const FilmConditioning& conditioning() const override { return conditioning_; }
  void RunPass(const int* row_step, cudaStream_t stream) const override;
  const std::vector<Op>& ops() const { return pass_; }  // of a pass, without row_step

 private:
  // A value of the graph, whose epilogue its first reader runs and materialises.
  struct Value {
    NormConvSource source;
    int length = 0;
  };
  NormConvSource Consume(Value& value) const;
  Value Block(const NormConvBlock& block, Value& x, Value* skip, bool materialize);
  Value FirstBlock(const NormConvBlock& block, const FirstConvArgs& first, int horizon);
  Value SecondHalf(const NormConvBlock& block, const void* raw, const void* residual, int length,
                   bool materialize);
  Value Resample(const DeviceNormConv& conv, Value& x);
  NormConvArgs Convolve(const DeviceNormConv& conv, int in_length, int out_length) const;
  NormConvSource DeferredEpilogue(const DeviceNorm& norm, const void* raw, int channels) const;
  void* Take(int length, int channels);

  Format format_;
  int rows_;
  DeviceArena& arena_;
  FilmConditioning conditioning_;
  void* input_ = nullptr;
  float* output_ = nullptr;
  int input_pitch_ = 0;
  std::vector<Op> pass_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_NORM_CONV_UNET_H_

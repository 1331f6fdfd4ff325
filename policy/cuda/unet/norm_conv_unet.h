#ifndef POLICY_CUDA_UNET_NORM_CONV_UNET_H_
#define POLICY_CUDA_UNET_NORM_CONV_UNET_H_

#include <vector>

#include "policy/cuda/unet/film.h"
#include "policy/cuda/unet/unet_pass.h"

namespace mjp {

struct FusedBlock1d {
  DeviceFusedConv conv1, conv2;  // conv1 carries the block's 1x1 residual
  DeviceNorm norm1, norm2;
  FilmTerms film;
};
struct FusedLevel1d {
  FusedBlock1d block1, block2;
  DeviceFusedConv resample;  // in_c 0: none
};

// The U-Net's weights in the fused kernels' layout.
struct FusedUnet {
  std::vector<FusedLevel1d> down, up;
  FusedBlock1d mid1, mid2;
  DeviceFusedConv final_conv;
  DeviceNorm final_norm;
  DeviceFilm film;
  FirstConvArgs first;  // of down[0].block1
  HeadArgs head;
};

// Rows x horizon; beyond this a separate normalisation is cheaper than one in every block of out
// channels.
inline constexpr int kMostFusedPositions = 512;

// Packs `checkpoint`'s U-Net; with `measuring`, sizes alone.
FusedUnet LoadFusedUnet(LayerLoader& loader, const Checkpoint& checkpoint, bool measuring);

// Whether every layer of `checkpoint` has a fused kernel for this many rows.
bool FusedUnetSupports(const Checkpoint& checkpoint, Format format, int rows);

// The pass of small batches: one launch per convolution.
class FusedUnetPlan final : public UnetPass {
 public:
  // Row r is of environment r / rows_per_env. `condition`: of another plan, shared with it.
  FusedUnetPlan(const FusedUnet& unet, Format format, int horizon, int rows, int rows_per_env,
                DeviceArena& arena, const FilmCondition* condition = nullptr);

  void* input() const override { return input_; }
  int input_pitch() const override { return input_pitch_; }
  float* output() const override { return output_; }
  const FilmCondition& condition() const override { return condition_; }
  void RunPass(const int* row_step, cudaStream_t stream) const override;
  // Whether the kernels support every layer.
  bool Supported() const;

 private:
  // What a layer hands to the next ones: pending until its first reader has finished it.
  struct Signal {
    FusedSource source;
    int length = 0;
  };
  FusedSource Consume(Signal& signal) const;
  Signal Block(const FusedBlock1d& block, Signal* x, Signal* skip, bool keep);
  Signal FirstBlock(const FusedBlock1d& block, const FirstConvArgs& first, int horizon);
  Signal SecondHalf(const FusedBlock1d& block, const void* raw, const void* residual, int length,
                    bool keep);
  Signal Resample(const DeviceFusedConv& conv, Signal& x);
  FusedConvArgs Convolve(const DeviceFusedConv& conv, int in_length, int out_length) const;
  FusedSource Pending(const DeviceNorm& norm, const void* raw, int channels) const;
  void* Take(int length, int channels);

  Format format_;
  int rows_;
  DeviceArena& arena_;
  FilmCondition condition_;
  void* input_ = nullptr;
  float* output_ = nullptr;
  int input_pitch_ = 0;
  bool supported_ = true;  // no identity of concatenated channels
  std::vector<Op> pass_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_NORM_CONV_UNET_H_

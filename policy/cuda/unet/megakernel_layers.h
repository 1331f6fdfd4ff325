#ifndef POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_
#define POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_

#include <vector>

#include "kernels/cuda/megakernel/megakernel.cuh"
#include "policy/cuda/unet/norm_conv_unet.h"

namespace mjp {

// The stages of the persistent chain of up to 32 rows, and their memory.
class WideStages {
 public:
  // `packed`: of the same network, whose weights these read; or null.
  WideStages(const FusedUnet& unet, Format format, int horizon, int rows, DeviceArena& arena,
             const WideStages* packed = nullptr);

  // Whether the kernel runs every stage.
  bool Supported() const { return supported_; }
  // Whether threads multiply or finish, rather than both.
  bool Roles() const { return args_.roles; }
  // The terms of the final convolution's output, whose groups the head's words are of.
  const ChainSource& last() const { return stages_.back().own; }
  // The kernel's arguments for `chain` in so much shared memory.
  WideChainArgs Args(const ChainArgs& chain, size_t shared_bytes) const;
  size_t SharedBytes(const ChainArgs& chain) const;

 private:
  // What a layer hands to the next ones.
  struct Signal {
    const void* finished = nullptr;
    int channels = 0, length = 0;
    bool block = false;  // its items are at hand as the next block's residual
  };
  void OrderWeights();
  WideStage Convolve(const DeviceFusedConv& conv, const Signal& x, const Signal* skip,
                     int out_length);
  void SetNorm(ChainSource& own, const DeviceNorm& norm);
  Signal Push(WideStage& stage, bool keep = true);
  Signal Block(const FusedBlock1d& block, const Signal& x, const Signal* skip);
  Signal FirstBlock(const FusedUnet& unet, int horizon);
  Signal SecondHalf(const FusedBlock1d& block, const Signal& hidden);
  Signal Resample(const DeviceFusedConv& conv, const Signal& x);
  void PlaceBoxes(WideBox WideStage::*box);
  void SetLayouts();

  DeviceArena& arena_;
  const WideStages* packed_;
  std::vector<WideStage> stages_;
  WideChainArgs args_;
  uint32_t box_words_ = 0;
  bool supported_ = true;
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_

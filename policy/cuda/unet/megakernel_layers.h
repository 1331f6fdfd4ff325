#ifndef POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_
#define POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_

#include <vector>

#include "kernels/cuda/megakernel/megakernel.cuh"
#include "policy/cuda/unet/norm_conv_unet.h"

namespace mjp {

// The layers of the persistent megakernel of up to 32 rows, and their memory.
class MegakernelLayers {
 public:
  // `packed`: of the same network, whose weights are shared; or null.
  MegakernelLayers(const NormConvUnet& unet, Format format, int horizon, int rows,
                   DeviceArena& arena, const MegakernelLayers* packed = nullptr);

  // Whether the kernel runs every layer.
  bool Supported() const { return supported_; }
  // Whether it runs with MMA warps and epilogue warps.
  bool warp_specialized() const { return args_.warp_specialized; }
  // As they are planned; what the kernel reads.
  const std::vector<megakernel::Layer>& layers() const { return layers_; }
  // The epilogue of the final convolution, whose norm groups the head's partial sums are of.
  const megakernel::EpilogueSource& last() const { return layers_.back().epilogue; }
  size_t SharedBytes(const megakernel::CommonArgs& common) const;
  // Launches the kernel in so much shared memory.
  void Launch(const megakernel::CommonArgs& common, size_t shared_bytes, cudaStream_t stream) const;

 private:
  // A value of the graph: what a layer's output is to the next ones.
  struct Value {
    const void* activations = nullptr;
    int channels = 0, length = 0;
    bool ends_block = false;  // a residual block's output, which the owners have as residual
  };
  megakernel::Args Args(const megakernel::CommonArgs& common, size_t shared_bytes) const;
  void ReorderWeights();
  megakernel::Layer Convolve(const DeviceNormConv& conv, const Value& x, const Value* skip,
                             int out_length);
  void SetNorm(megakernel::EpilogueSource& own, const DeviceNorm& norm);
  Value Append(megakernel::Layer& layer, bool has_output = true);
  Value Block(const NormConvBlock& block, const Value& x, const Value* skip);
  Value FirstBlock(const NormConvBlock& block, const FirstConvArgs& conv, int horizon);
  Value SecondHalf(const NormConvBlock& block, const Value& hidden);
  Value Resample(const DeviceNormConv& conv, const Value& x);
  void PlaceMailboxes(megakernel::Mailbox megakernel::Layer::*mailbox);
  void SetSourceLayouts();

  Format format_;
  DeviceArena& arena_;
  const MegakernelLayers* packed_;
  std::vector<megakernel::Layer> layers_;
  megakernel::Args args_;
  uint32_t mailbox_values_ = 0;
  bool supported_ = true;
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_

#ifndef POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_
#define POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_

#include <vector>

#include "policy/cuda/unet/megakernel_plan.h"

namespace mjp {

// The layers of the megakernel of up to 32 rows as it reads them, and their memory.
class MegakernelLayers {
 public:
  // `packed`: of the same network, whose weights are shared; or null.
  MegakernelLayers(const NormConvUnet& unet, Format format, int horizon, int rows,
                   const megakernel::Target& target, DeviceArena& arena,
                   const MegakernelLayers* packed = nullptr);

  // Whether the kernel runs every layer.
  bool Supported() const { return supported_; }
  // Whether it runs with MMA warps and epilogue warps.
  bool warp_specialized() const { return args_.warp_specialized; }
  // As they are planned; what the kernel reads.
  const std::vector<megakernel::Layer>& layers() const { return layers_; }
  size_t SharedBytes(const megakernel::CommonArgs& common) const;
  // Launches the kernel in so much shared memory.
  void Launch(const megakernel::CommonArgs& common, size_t shared_bytes, cudaStream_t stream) const;

 private:
  megakernel::PortablePlan Portable(const megakernel::CommonArgs& common) const;
  megakernel::Args Args(const megakernel::CommonArgs& common, size_t shared_bytes) const;
  void PlaceActivations(const MegakernelPlan& plan);
  void ReorderWeights(const MegakernelLayers* packed);

  Format format_;
  DeviceArena& arena_;
  std::vector<megakernel::Layer> layers_;
  megakernel::Target target_;
  megakernel::Args args_;
  void* table_ = nullptr;        // of the portable form
  float4* residuals_ = nullptr;  // likewise
  bool supported_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_

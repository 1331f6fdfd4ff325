#ifndef POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_
#define POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_

#include <vector>

#include "policy/cuda/execution_plan.h"
#include "policy/cuda/unet/megakernel_plan.h"

namespace mjp {

// The layers of the megakernel of up to 32 rows as it reads them, and their memory.
class MegakernelLayers {
 public:
  // form: one of the megakernel's. `packed`: of the same network, whose weights are shared; or
  // null.
  MegakernelLayers(const NormConvUnet& unet, Format format, int horizon, int rows, UnetForm form,
                   const megakernel::Target& target, DeviceArena& arena,
                   const MegakernelLayers* packed = nullptr);
  // Plans the shared memory of launches whose arguments have the sizes of `common`.
  void PlaceInShared(const megakernel::CommonArgs& common);

  // Whether the kernel runs every layer.
  bool Supported() const { return supported_; }
  // Whether it runs with MMA warps and epilogue warps.
  bool warp_specialized() const { return args_.warp_specialized; }
  // As they are planned; what the kernel reads.
  const std::vector<megakernel::Layer>& layers() const { return layers_; }
  size_t shared_bytes() const { return shared_bytes_; }  // of a CTA, once placed
  void Launch(const megakernel::CommonArgs& common, cudaStream_t stream) const;

 private:
  void PlaceActivations(const MegakernelPlan& plan);
  void ReorderWeights(const MegakernelLayers* packed);

  Format format_;
  DeviceArena& arena_;
  std::vector<megakernel::Layer> layers_;
  megakernel::Target target_;
  megakernel::Args args_;
  megakernel::PortablePlan portable_;
  size_t shared_bytes_ = 0;
  void* table_ = nullptr;        // of the portable form
  float4* residuals_ = nullptr;  // likewise
  bool supported_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_

#ifndef POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_
#define POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_

#include <optional>
#include <vector>

#include "policy/cuda/unet/megakernel_plan.h"

namespace mjp {

// The layers of a planned launch of the megakernel as it reads them, and their memory.
class MegakernelLayers {
 public:
  // `packed`: of the same network, whose weights are shared; or null.
  MegakernelLayers(const NormConvUnet& unet, Format format, const MegakernelPlan& plan,
                   DeviceArena& arena, const MegakernelLayers* packed = nullptr);

  // As they are planned; what the kernel reads.
  const std::vector<megakernel::Layer>& layers() const { return layers_; }
  void Launch(const megakernel::CommonArgs& common, cudaStream_t stream) const;

 private:
  void SetWeights(const NormConvUnet& unet);
  void PlaceActivations(const MegakernelPlan& plan);
  void ReorderWeights(const MegakernelLayers* packed);

  Format format_;
  DeviceArena& arena_;
  std::vector<megakernel::Layer> layers_;
  megakernel::Args args_;
  std::optional<megakernel::PortablePlan> portable_;
  size_t shared_bytes_;          // of a CTA
  void* table_ = nullptr;        // of the portable form
  float4* residuals_ = nullptr;  // likewise
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_MEGAKERNEL_LAYERS_H_

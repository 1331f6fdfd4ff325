#ifndef POLICY_UNET_UNET_POLICY_H_
#define POLICY_UNET_UNET_POLICY_H_

#include <memory>
#include <vector>

#include "policy/cpu/denoising_policy.h"
#include "policy/cpu/encoder.h"
#include "policy/cpu/unet.h"
#include "policy/unet/unet_model.h"

namespace mjp::cpu {

// All weights of a checkpoint, packed for this processor. Shared by all policies of the checkpoint.
struct PackedNetworks {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::vector<std::shared_ptr<const PackedEncoder>> encoders;  // one per camera
  std::shared_ptr<const PackedUnet> unet;
};

// The policy of a U-Net on the CPU, in float32.
class UnetCpuPolicy : public DenoisingPolicy {
 public:
  // `options` as resolved. Throws Error for shapes that are not supported.
  UnetCpuPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);

 private:
  void Forward(const float* x, const int* step, const int* environment, int rows,
               float* output) override;
  void SetConditioning(std::span<const float> cond, int count) override;
  int FramesAtOnce(size_t camera) const override;
  void PrepareFrames(size_t camera, const uint8_t* frames, int64_t stride, int count) override;
  void EncodePrepared(size_t camera, int count, float* features) override;
  void AssembleConditioning(const PolicyInput& input) override;

  const UnetPolicyConfig& config_;  // of the checkpoint
  std::shared_ptr<const PackedNetworks> networks_;
  std::vector<Encoder> encoders_;  // one per camera
  std::unique_ptr<Unet> unet_;
};

std::unique_ptr<Policy> MakeUnetPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                       const PolicyOptions& options);

}  // namespace mjp::cpu

#endif  // POLICY_UNET_UNET_POLICY_H_

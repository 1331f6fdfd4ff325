#ifndef POLICY_CPU_CPU_POLICY_H_
#define POLICY_CPU_CPU_POLICY_H_

#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/thread_pool.h"
#include "policy/cpu/encoder.h"
#include "policy/cpu/unet.h"
#include "policy/policy.h"
#include "policy/sampler.h"
#include "policy/unet/unet_model.h"

namespace mjp::cpu {

// All weights of a checkpoint, packed for this processor. Shared by all policies of the checkpoint.
struct PackedNetworks {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::vector<std::shared_ptr<const PackedEncoder>> encoders;  // one per camera
  std::shared_ptr<const PackedUnet> unet;
};

// The policy of a U-Net on the CPU, in float32.
class CpuPolicy : public Policy, private StepNetwork {
 public:
  // `options` as resolved. Throws Error for shapes that are not supported.
  CpuPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);

  void Infer(const PolicyInput& input, PolicyOutput& output) override;
  std::string Description() const override;

 private:
  void Evaluate(const float* x, const int* step, const int* environment, int rows,
                float* output) override;
  // Fills features_ from RGB frames (N, To, cameras, height, width, 3).
  void EncodeFrames(const uint8_t* frames, int count, StageTimes& times);
  // Fills cond_ from the normalised state, features_ and the normalised environment.
  void AssembleCondition(const PolicyInput& input);
  void FillCondition(const PolicyInput& input, StageTimes& times);

  const UnetPolicyConfig& config_;  // of the checkpoint
  ThreadPool pool_;
  std::shared_ptr<const PackedNetworks> networks_;
  std::vector<DenoiseStep> schedule_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<Encoder> encoders_;  // one per camera
  std::unique_ptr<Unet> unet_;
  std::vector<uint8_t> frames_;  // drawn from scenes
  AlignedBuffer features_;       // (cameras, batch * To, feature_dim)
  AlignedBuffer cond_;           // (batch, CondDim())
  AlignedBuffer x_;              // (batch, horizon * action_dim)
  StageTimes* times_ = nullptr;  // of the decision under way
};

// CpuPolicy, for the table of policy/network_types.h.
std::unique_ptr<Policy> MakeUnetPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                       const PolicyOptions& options);

}  // namespace mjp::cpu

#endif  // POLICY_CPU_CPU_POLICY_H_

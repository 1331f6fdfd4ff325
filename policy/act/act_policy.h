#ifndef POLICY_ACT_ACT_POLICY_H_
#define POLICY_ACT_ACT_POLICY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/thread_pool.h"
#include "policy/act/act_model.h"
#include "policy/act/act_trace.h"
#include "policy/act/act_transformer.h"
#include "policy/cpu/encoder.h"
#include "policy/policy.h"

namespace mjp::cpu {

// An ACT policy on the CPU, in float32. A chunk is a function of the observation alone: keys are
// not read.
class ActPolicy final : public Policy {
 public:
  // `options` as resolved. Throws Error for shapes that are not supported.
  ActPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);

  void Infer(const PolicyInput& input, PolicyOutput& output) override;
  std::string Description() const override;

 private:
  // Numbers that are one token of each environment.
  struct Vector {
    const ConvLayer* layer;
    const FeatureStats* stats;
    const char* feature;
    std::span<const float> values;  // (environments, layer->in), raw
    int token;
  };

  // The tokens of environments [first, first + count) of `input`.
  void FillTokens(const PolicyInput& input, const uint8_t* frames, int first, int count,
                  ActTrace* trace);
  void AddVector(const Vector& vector, int first, int count, ActTrace* trace);
  void AddPictures(const uint8_t* frames, size_t camera, int token, int first, int count,
                   ActTrace* trace);

  const ActPolicyConfig& config_;  // of the checkpoint
  ThreadPool pool_;
  std::shared_ptr<const PackedAct> weights_;
  int at_once_ = 1;                // environments of one pass
  std::vector<Encoder> encoders_;  // one per camera; all have the same weights
  std::unique_ptr<ActTransformer> transformer_;
  std::vector<uint8_t> frames_;      // drawn from scenes
  std::vector<float> numbers_;       // normalised state or environment
  AlignedBuffer actions_;            // (batch, horizon, action_dim)
  double prepare_ = 0, encode_ = 0;  // seconds of the decision under way
};

// ActPolicy, for the table of policy/network_types.h.
std::unique_ptr<Policy> MakeActPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                      const PolicyOptions& options);

}  // namespace mjp::cpu

#endif  // POLICY_ACT_ACT_POLICY_H_

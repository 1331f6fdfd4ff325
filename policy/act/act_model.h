#ifndef POLICY_ACT_ACT_MODEL_H_
#define POLICY_ACT_ACT_MODEL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/key_reader.h"
#include "policy/act/act_config.h"
#include "policy/act/act_weights.h"
#include "policy/checkpoint/network_model.h"

namespace mjp {

// LeRobot's "act": a ResNet, a transformer's encoder, and a decoder that answers with a chunk in
// one pass.
class ActModel final : public NetworkModel {
 public:
  ActPolicyConfig config;  // its part that every policy has is Checkpoint::config
  ActWeights weights;

  void ListTensors(const TensorSource& source, const VisitShape& visit) const override;
  int64_t TakeTensors(TensorSource& source) override;
  void VisitTensors(const VisitTensor& visit) const override;
  void AddConfig(Json& json) const override;
  std::vector<std::pair<std::string, std::string>> Describe() const override;
  SamplerTraits sampler() const override { return {}; }
};

// Parses what such a config.json has beyond its features: adds the times to `policy` and returns
// the network without weights. Throws Error that names the key.
std::unique_ptr<NetworkModel> ParseActModel(KeyReader& keys, const std::string& origin,
                                            PolicyConfig& policy);

// The network of such a checkpoint. Throws Error(kBadInput) for another's.
const ActModel& ActOf(const Checkpoint& checkpoint);

}  // namespace mjp

#endif  // POLICY_ACT_ACT_MODEL_H_

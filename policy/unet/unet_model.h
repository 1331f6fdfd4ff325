#ifndef POLICY_UNET_UNET_MODEL_H_
#define POLICY_UNET_UNET_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/key_reader.h"
#include "policy/checkpoint/network.h"
#include "policy/checkpoint/network_model.h"

namespace mjp {

// LeRobot's "diffusion", this project's "diffusion_compact" and Diffusion Policy's notebooks: a
// picture encoder and a 1-D U-Net.
class UnetModel final : public NetworkModel {
 public:
  UnetPolicyConfig config;               // its part that every policy has is Checkpoint::config
  std::vector<EncoderWeights> encoders;  // one, or one per camera
  UnetWeights unet;
  PictureLooks looks;  // of its training: look.json

  void ReadFiles(CheckpointFiles& files) override;
  void ListTensors(const TensorSource& source, const VisitShape& visit) const override;
  int64_t TakeTensors(TensorSource& source) override;
  void VisitTensors(const VisitTensor& visit) const override;
  void AddConfig(Json& json) const override;
  std::vector<std::pair<std::string, std::string>> Describe() const override;
  PictureLooks trained_looks() const override { return looks; }
  SamplerTraits sampler() const override;
  int cond_dim() const override { return config.CondDim(); }
};

// An encoder, for people.
std::string EncoderText(const EncoderConfig& encoder);

// Parses what such a config.json has beyond its features: adds the times to `policy` and returns
// the network without weights. Throws Error that names the key.
std::unique_ptr<NetworkModel> ParseUnetModel(KeyReader& keys, const std::string& origin,
                                             PolicyConfig& policy);

// The network of such a checkpoint. Throws Error(kBadInput) for another's.
const UnetModel& UnetOf(const Checkpoint& checkpoint);
// The same, or null for another's.
const UnetModel* FindUnet(const Checkpoint& checkpoint);

}  // namespace mjp

#endif  // POLICY_UNET_UNET_MODEL_H_

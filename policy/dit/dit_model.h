#ifndef POLICY_DIT_DIT_MODEL_H_
#define POLICY_DIT_DIT_MODEL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/key_reader.h"
#include "policy/checkpoint/network_model.h"
#include "policy/dit/dit_weights.h"
#include "policy/dit/tokenizer.h"

namespace mjp {

// LeRobot's "multi_task_dit": CLIP towers for pictures and text, and a transformer that denoises;
// and this project's "dit_compact": the same transformer, its own encoder and no text.
class DitModel final : public NetworkModel {
 public:
  DitConfig config;  // its part that every policy has is Checkpoint::config
  DitWeights weights;
  std::shared_ptr<const Tokenizer> tokenizer;  // null where the files are absent
  std::string tokenizer_lack;                  // and then what to do
  PictureLooks looks;                          // of its training: look.json

  void ReadFiles(CheckpointFiles& files) override;
  void ListTensors(const TensorSource& source, const VisitShape& visit) const override;
  int64_t TakeTensors(TensorSource& source) override;
  void VisitTensors(const VisitTensor& visit) const override;
  void AddConfig(Json& json) const override;
  std::vector<std::pair<std::string, std::string>> Describe() const override;
  PictureLooks trained_looks() const override { return looks; }
  SamplerTraits sampler() const override;
  int cond_dim() const override { return config.CondDim(); }
  int text_tokens() const override;

 private:
  // The configuration with the sizes of the towers that `source` has, checked.
  DitConfig SizedConfig(const TensorSource& source) const;
};

// Parses what such a config.json has beyond its features: adds the times to `policy` and returns
// the network without weights. Throws Error that names the key.
std::unique_ptr<NetworkModel> ParseDitModel(KeyReader& keys, const std::string& origin,
                                            PolicyConfig& policy);

// The network of such a checkpoint. Throws Error(kBadInput) for another's.
const DitModel& DitOf(const Checkpoint& checkpoint);

}  // namespace mjp

#endif  // POLICY_DIT_DIT_MODEL_H_

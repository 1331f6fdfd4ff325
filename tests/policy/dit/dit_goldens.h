#ifndef TESTS_POLICY_DIT_DIT_GOLDENS_H_
#define TESTS_POLICY_DIT_DIT_GOLDENS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/normalization/statistics.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/dit/dit_model.h"
#include "policy/policy.h"
#include "tests/policy/dit/dit_formula.h"
#include "tests/support/shared_data.h"

// Cases of multi_task_dit that the original library ran, with inputs and intermediates stored.

namespace mjp_test {

// largest differences, float32: the goldens' own suggestion
inline constexpr double kClipLimit = 2e-5, kTimeLimit = 5e-6, kBlockLimit = 2e-5, kOutLimit = 4e-6;
inline constexpr double kStepLimit = 2e-5, kActionLimit = 3e-5;

inline std::string DitGolden(const std::string& file) {
  return SharedPath("goldens_act_dit/" + file);
}
inline mjp::Json DitCase(const std::string& name) {
  return mjp::ReadJson(DitGolden("case_" + name + ".json"));
}
inline mjp::SafetensorsFile DitTensors(const std::string& name) {
  return mjp::SafetensorsFile::Read(DitGolden(name + ".safetensors"));
}

inline void SetTower(const mjp::Json& json, mjp::ClipTower& tower) {
  tower.width = json["hidden_size"];
  tower.mlp = json["intermediate_size"];
  tower.layers = json["num_hidden_layers"];
  tower.heads = json["num_attention_heads"];
}

inline std::shared_ptr<const mjp::Tokenizer> SmallTokenizer() {
  const std::string folder = DitGolden("p_dit_tiny/clip-tiny");
  const std::vector<uint8_t> merges = mjp::ReadFile(folder + "/merges.txt", 1 << 20);
  return std::make_shared<mjp::Tokenizer>(
      mjp::ReadJson(folder + "/vocab.json"),
      std::string_view(reinterpret_cast<const char*>(merges.data()), merges.size()), folder);
}

// The policy of case or chain `name`, with formula weights.
inline std::shared_ptr<const mjp::Checkpoint> DitCheckpoint(const std::string& name) {
  const mjp::Json chain = DitCase(name);
  const mjp::Json network = DitCase(chain.value("network", name));
  mjp::ConfigFile file = mjp::ParseConfig(chain["config"], name);
  auto& model = dynamic_cast<mjp::DitModel&>(*file.network);
  mjp::ClipConfig& clip = model.config.clip;
  SetTower(network["clip"]["vision"], clip.vision);
  SetTower(network["clip"]["text"], clip.text);
  clip.patch = network["clip"]["vision"]["patch_size"];
  clip.image = network["clip"]["vision"]["image_size"];
  clip.vocabulary = network["clip"]["text"]["vocab_size"];
  clip.positions = network["clip"]["text"]["max_position_embeddings"];
  if (network["task"].is_string()) model.tokenizer = SmallTokenizer();
  auto checkpoint = std::make_shared<mjp::Checkpoint>();
  checkpoint->config = file.policy;
  const auto lookup = [&](const std::string& feature, const std::string& stat) {
    return network["stats"][feature][stat].get<std::vector<float>>();
  };
  checkpoint->stats = mjp::CollectStats(file.policy, file.modes, lookup, name);
  checkpoint->directory = "(formula weights)";
  DitFormula weights;
  checkpoint->parameter_count = model.TakeTensors(weights);
  checkpoint->network = file.network;
  return checkpoint;
}

// The stored inputs of a network's cases. Not copyable: `input` looks into the rest.
struct DitInputs {
  std::vector<uint8_t> frames;
  std::vector<float> state, x_start, noise;
  std::vector<std::string> instructions;
  mjp::PolicyInput input;

  DitInputs(const std::string& network, const mjp::PolicyConfig& config) {
    const mjp::SafetensorsFile file = DitTensors(network);
    std::vector<std::vector<uint8_t>> cameras;
    for (const auto& camera : config.cameras) cameras.push_back(file.Bytes("in/" + camera.name));
    for (int step = 0; step < config.n_obs_steps; ++step) {
      for (const std::vector<uint8_t>& pictures : cameras) {
        const auto size = static_cast<ptrdiff_t>(pictures.size() / config.n_obs_steps);
        const auto begin = pictures.begin() + step * size;
        frames.insert(frames.end(), begin, begin + size);
      }
    }
    state = file.Floats("in/observation.state").data;
    x_start = file.Floats("in/x_T").data;
    noise = file.Floats("in/noise_by_t").data;
    const mjp::Json task = DitCase(network)["task"];
    if (task.is_string()) instructions = {task.get<std::string>()};
    input.count = 1;
    input.frames = frames;
    input.state = state;
    input.x_start = x_start;
    input.instructions = instructions;
  }
  DitInputs(const DitInputs&) = delete;
  DitInputs& operator=(const DitInputs&) = delete;
};

// The ids of the stored text, without what pads it.
inline std::vector<int> TextIds(const mjp::SafetensorsFile& file) {
  const std::vector<int64_t> all = file.Integers("in/ids");
  const std::vector<uint8_t> mask = file.Bytes("in/mask");
  std::vector<int> ids;
  for (size_t i = 0; i < all.size() && mask[i] != 0; ++i) ids.push_back(static_cast<int>(all[i]));
  return ids;
}

}  // namespace mjp_test

#endif  // TESTS_POLICY_DIT_DIT_GOLDENS_H_

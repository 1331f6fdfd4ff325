#ifndef TESTS_POLICY_DIT_SMALL_DIT_H_
#define TESTS_POLICY_DIT_SMALL_DIT_H_

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/dit/dit_model.h"
#include "tests/policy/dit/dit_formula.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {

// A multi_task_dit small enough for any test: one camera of 20x24, towers of width 16.
inline mjp::DitConfig SmallDitConfig(bool rope) {
  mjp::DitConfig config;
  config.type = "multi_task_dit";
  config.horizon = 8;
  config.n_action_steps = 4;
  config.cameras = {{"observation.images.top", 3, 20, 24}};
  config.state_dim = 3;
  config.action_dim = 2;
  config.scheduler.train_steps = 20;
  config.scheduler.inference_steps = 10;
  config.integration_steps = 6;
  config.hidden = 32, config.layers = 2, config.heads = 4;
  config.time_embed = 16;
  config.rope = rope;
  config.position_embedding = !rope;
  config.resize_height = 17, config.resize_width = 20;
  config.crop_height = config.crop_width = 12;
  config.vision_name = config.text_name = "clip-small";
  config.clip = {.vision = {.width = 16, .mlp = 40, .layers = 2, .heads = 2},
                 .patch = 4,
                 .image = 12,
                 .text = {.width = 24, .mlp = 36, .layers = 2, .heads = 2},
                 .vocabulary = 8,
                 .positions = 10};
  return config;
}

// The policy with formula weights. Its tokenizer knows a, b and c.
inline std::shared_ptr<mjp::Checkpoint> SmallDit(const mjp::DitConfig& config) {
  auto model = std::make_shared<mjp::DitModel>();
  model->config = config;
  auto checkpoint = std::make_shared<mjp::Checkpoint>();
  checkpoint->config = config;
  checkpoint->stats.cameras = {
      {mjp::Normalization::kMeanStd, {0.5f, 0.4f, 0.3f}, {0.2f, 0.25f, 0.3f}}};
  mjp::FeatureStats& state = checkpoint->stats.state;
  state.mode = mjp::Normalization::kMinMax;
  for (int i = 1; i <= config.state_dim; ++i) {
    state.first.push_back(static_cast<float>(-i));
    state.second.push_back(static_cast<float>(i));
  }
  checkpoint->stats.action = {mjp::Normalization::kMinMax, {-1, 0}, {1, 4}};
  checkpoint->directory = "(formula weights)";
  DitFormula weights;
  checkpoint->parameter_count = model->TakeTensors(weights);
  checkpoint->network = std::move(model);
  return checkpoint;
}

// Writes it into `directory` of `parent`, with the files of CLIP.
inline std::string WriteSmallDit(const TempDir& parent, const std::string& directory,
                                 const mjp::DitConfig& config) {
  mjp::WriteCheckpoint(parent / directory, *SmallDit(config), mjp::WeightFormat::kF32);
  std::filesystem::create_directory(parent / (directory + "/clip-small"));
  parent.Write(directory + "/clip-small/config.json",
               R"({"model_type": "clip", "vision_config": {"num_attention_heads": 2},
                   "text_config": {"num_attention_heads": 2, "hidden_act": "quick_gelu"}})");
  parent.Write(directory + "/clip-small/vocab.json",
               R"({"a": 0, "b": 1, "c": 2, "a</w>": 3, "b</w>": 4, "c</w>": 5,
                   "<|startoftext|>": 6, "<|endoftext|>": 7})");
  parent.Write(directory + "/clip-small/merges.txt", "#version: 0.2\n");
  return parent / directory;
}

}  // namespace mjp_test

#endif  // TESTS_POLICY_DIT_SMALL_DIT_H_

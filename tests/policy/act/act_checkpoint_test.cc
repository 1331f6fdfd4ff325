#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "policy/act/act_model.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/inspect.h"
#include "tests/support/damaged_checkpoint.h"
#include "tests/support/goldens/act_cases.h"

// What a directory of an ACT policy must hold, and how it is refused.

namespace mjp_test {
namespace {

using mjp::Json;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kNorm[] = "model.encoder.layers.1.norm2.weight";

class ActCheckpointTest : public DamagedCheckpoint {
 protected:
  ActCheckpointTest() {
    mjp::ActPolicyConfig config = SmallActConfig();
    config.cameras.clear();  // quick to write again and again
    Rewrite(config);
  }
  void Rewrite(const mjp::ActPolicyConfig& config) {
    mjp::WriteCheckpoint(path(), *ActCheckpoint(config), mjp::WeightFormat::kF32);
  }
};

TEST_F(ActCheckpointTest, LoadsAsWritten) {
  mjp::ActPolicyConfig config = SmallActConfig();
  config.pre_norm = true;
  config.activation = mjp::TokenActivation::kGeluErf;
  config.resnet = 34;
  config.n_action_steps = 1;
  config.temporal_ensemble = 0.01;
  Rewrite(config);
  const auto loaded = mjp::LoadCheckpoint(path()), original = ActCheckpoint(config);
  EXPECT_EQ(mjp::ConfigToJson(*loaded), mjp::ConfigToJson(*original));
  EXPECT_EQ(loaded->parameter_count, original->parameter_count);
  EXPECT_EQ(loaded->config.horizon, 6);
  EXPECT_EQ(loaded->config.FirstAction(), 0);
  EXPECT_EQ(loaded->config.temporal_ensemble, 0.01);
  std::vector<std::string> names;
  Tensors expected;
  original->network->VisitTensors(
      [&](const std::string& name, const mjp::Tensor& tensor) { expected[name] = tensor; });
  loaded->network->VisitTensors([&](const std::string& name, const mjp::Tensor& tensor) {
    EXPECT_EQ(tensor.data, expected.at(name).data) << name;
    expected.erase(name);
  });
  EXPECT_TRUE(expected.empty());
}

struct TensorFault {
  const char* name;
  std::function<void(Tensors&)> damage;
  std::vector<const char*> said;
};

TEST_F(ActCheckpointTest, RefusesTensorsThatAreNotItsOwn) {
  const std::vector<TensorFault> faults = {
      {"missing", [](Tensors& t) { t.erase(kNorm); }, {kNorm, "lacks"}},
      {"misshapen",
       [](Tensors& t) {
         t[kNorm] = {{23}, std::vector<float>(23)};
       },
       {kNorm, "(23)", "(24)"}},
      {"extra",
       [](Tensors& t) { t["model.encoder.layers.2.norm2.weight"] = t[kNorm]; },
       {"model.encoder.layers.2.norm2.weight", "does not have"}},
      {"a norm that only pre_norm has",
       [](Tensors& t) { t["model.encoder.norm.weight"] = t[kNorm]; },
       {"model.encoder.norm.weight", "does not have"}},
      {"not finite",
       [](Tensors& t) { t[kNorm].data[3] = std::numeric_limits<float>::quiet_NaN(); },
       {kNorm, "not finite at element 3"}},
      {"misshapen of training",
       [](Tensors& t) {
         t["model.vae_encoder_cls_embed.weight"] = {{1, 23}, std::vector<float>(23)};
       },
       {"model.vae_encoder_cls_embed.weight", "(1, 23)"}},
      {"another chunk",
       [](Tensors& t) {
         t["model.decoder_pos_embed.weight"].shape = {4, 36};
       },
       {"model.decoder_pos_embed.weight", "(6, 24)"}}};
  for (const TensorFault& fault : faults) {
    const TempDir backup;
    std::filesystem::copy(dir_ / kModel, backup / kModel);
    EditTensors(kModel, fault.damage);
    const std::string refusal = Refusal();
    for (const char* text : fault.said) EXPECT_THAT(refusal, HasSubstr(text)) << fault.name;
    std::filesystem::copy(backup / kModel, dir_ / kModel,
                          std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_EQ(Refusal(), "");
}

TEST_F(ActCheckpointTest, PassesOverWhatTrainingAloneHas) {
  const std::vector<float> row(24, 0.5f);
  EditTensors(kModel, [&](Tensors& t) {
    t["model.vae_encoder_cls_embed.weight"] = {{1, 24}, row};
    t["model.vae_encoder.layers.3.norm1.bias"] = {{24}, row};
    t["model.vae_encoder_latent_output_proj.bias"] = {{8}, std::vector<float>(8)};
    t["model.vae_encoder_pos_enc"] = {{1, 8, 24}, std::vector<float>(8 * 24)};
  });
  EXPECT_EQ(Refusal(), "");
  EditJson("config.json", [](Json& json) { json["use_vae"] = false; });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("model.vae_encoder"), HasSubstr("does not have")));
}

TEST_F(ActCheckpointTest, RefusesANegativeVariance) {
  mjp::ActPolicyConfig config = SmallActConfig();
  config.cameras.resize(1);
  Rewrite(config);
  EditTensors(kModel, [](Tensors& t) { t["model.backbone.bn1.running_var"].data[7] = -0.1f; });
  EXPECT_THAT(Refusal(), HasSubstr("model.backbone.bn1.running_var[7] is negative"));
}

TEST_F(ActCheckpointTest, RefusesConfigsThatItCannotRun) {
  const struct {
    const char* key;
    Json value;
    const char* said;
  } faults[] = {
      {"n_obs_steps", 2, "an integer from 1 to 1"},
      {"chunk_size", 0, "an integer from 1"},
      {"n_action_steps", 7, "an integer from 1 to 6"},
      {"vision_backbone", "resnet50", "resnet18, resnet34"},
      {"replace_final_stride_with_dilation", true, "must be false"},
      {"feedforward_activation", "glu", "relu, gelu"},
      {"n_heads", 5, "must divide dim_model"},
      {"dim_model", 26, "n_heads"},
      {"pre_norm", "yes", "pre_norm"},
      {"temporal_ensemble_coeff", 0.01, "n_action_steps"},
      {"temporal_ensemble_momentum", 0.5, "July 2024"},
      {"use_peft", true, "adapters"},
      {"n_encoder_layers", nullptr, "is missing"},
      {"horizon", 16, "horizon"},
      {"rtc_config", {{"enabled", true}}, "rtc_config"},
  };
  const std::string good = mjp::ReadJson(dir_ / "config.json").dump();
  for (const auto& fault : faults) {
    EditJson("config.json", [&](Json& json) { json[fault.key] = fault.value; });
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("config.json"), HasSubstr(fault.said))) << fault.key;
    dir_.Write("config.json", good);
  }
  EXPECT_EQ(Refusal(), "");
}

// LeRobot to 0.3: statistics within model.safetensors; in 2024 a config without types
TEST_F(ActCheckpointTest, ReadsTheOlderLayouts) {
  const auto fresh = mjp::LoadCheckpoint(path());
  const mjp::SafetensorsFile pre = mjp::SafetensorsFile::Read(dir_ / kPreStats);
  const mjp::SafetensorsFile post = mjp::SafetensorsFile::Read(dir_ / kPostStats);
  EditTensors(kModel, [&](Tensors& t) {
    for (const char* stat : {"mean", "std"}) {
      t[std::string("normalize_inputs.buffer_observation_state.") + stat] =
          pre.Floats(std::string("observation.state.") + stat);
      for (const char* place : {"normalize_targets", "unnormalize_outputs"})
        t[std::string(place) + ".buffer_action." + stat] =
            post.Floats(std::string("action.") + stat);
    }
  });
  for (const char* name : {kPre, kPost, kPreStats, kPostStats})
    std::filesystem::remove(dir_ / name);
  const auto old = mjp::LoadCheckpoint(path());
  EXPECT_EQ(old->stats.state.first, fresh->stats.state.first);
  EXPECT_EQ(old->stats.action.second, fresh->stats.action.second);
  EXPECT_EQ(old->stats.environment.mode, mjp::Normalization::kIdentity);
  EditJson("config.json", [](Json& json) {
    for (const char* key : {"type", "input_features", "output_features", "normalization_mapping"})
      json.erase(key);
    json["input_shapes"] = {{"observation.state", {3}}, {"observation.environment_state", {2}}};
    json["input_normalization_modes"] = {{"observation.state", "mean_std"},
                                         {"observation.environment_state", "identity"}};
    json["output_shapes"] = {{"action", {3}}};
    json["output_normalization_modes"] = {{"action", "mean_std"}};
    json["temporal_ensemble_momentum"] = nullptr;
    json["replace_final_stride_with_dilation"] = 0;
  });
  const auto oldest = mjp::LoadCheckpoint(path());
  EXPECT_EQ(oldest->config.type, "act");
  EXPECT_EQ(mjp::ConfigToJson(*oldest), mjp::ConfigToJson(*fresh));
}

TEST_F(ActCheckpointTest, InspectSaysWhatItIs) {
  EXPECT_THAT(mjp::InspectCheckpoint(path()),
              AllOf(HasSubstr("transformer   2 encoder and 2 decoder layers, 24 wide, 3 heads"),
                    HasSubstr("sampler       none"), HasSubstr("executes 4 from row 0")));
  const Json json = Json::parse(mjp::InspectCheckpoint(path(), {.json = true}));
  EXPECT_EQ(json.at("config").at("chunk_size"), 6);
  EXPECT_THROW(mjp::InspectCheckpoint(path(), {.gpu = "H200"}), mjp::Error);
}

}  // namespace
}  // namespace mjp_test

#include "policy/checkpoint/config_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/unet/unet_model.h"
#include "tests/support/goldens/golden_cases.h"

namespace mjp_test {
namespace {

using mjp::Json;
using mjp::Normalization;
using testing::AllOf;
using testing::HasSubstr;

// LeRobot's Push-T image configuration, as its newest releases write it.
Json LeRobotConfig() {
  mjp::Checkpoint outline;
  const auto network = std::make_shared<mjp::UnetModel>();
  network->config = GoldenConfig(GoldenCase::kLeRobotFull);
  outline.config = network->config;
  outline.stats = GoldenStats(GoldenCase::kLeRobotFull);
  outline.network = network;
  Json json = mjp::ConfigToJson(outline);
  json["num_inference_steps"] = nullptr;
  json["device"] = "cuda";
  json["use_amp"] = false;
  json["use_peft"] = false;
  json["license"] = nullptr;
  json["drop_n_last_frames"] = 7;
  json["gradient_checkpointing"] = false;
  json["compile_model"] = true;
  json["compile_mode"] = "reduce-overhead";
  json["optimizer_betas"] = {0.95, 0.999};
  json["scheduler_warmup_steps"] = 500;
  return json;
}

Json CompactConfig() { return mjp::ConfigToJson(*CompactCheckpoint()); }

mjp::UnetPolicyConfig UnetConfigOf(const mjp::ConfigFile& file) {
  return dynamic_cast<const mjp::UnetModel&>(*file.network).config;
}

mjp::UnetPolicyConfig Parse(const Json& json) {
  return UnetConfigOf(mjp::ParseConfig(json, "config.json"));
}

std::string RefusalOf(const Json& json) {
  try {
    mjp::ParseConfig(json, "config.json");
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("config.json"));
    return error.what();
  }
  return "";
}

TEST(ConfigParser, ReadsLeRobotsConfig) {
  const mjp::ConfigFile file = mjp::ParseConfig(LeRobotConfig(), "config.json");
  const mjp::UnetPolicyConfig config = UnetConfigOf(file);
  EXPECT_EQ(config.horizon, 16);
  EXPECT_EQ(config.n_action_steps, 8);
  EXPECT_EQ(config.CondDim(), 132);
  EXPECT_EQ(config.encoder.crop_height, 84);
  EXPECT_EQ(config.encoder.feature_dim, 64);
  EXPECT_TRUE(config.encoder.group_norm);
  EXPECT_EQ(config.unet.down_dims, (std::vector<int>{512, 1024, 2048}));
  EXPECT_EQ(config.scheduler.inference_steps, 100);
  EXPECT_EQ(file.modes.at("observation.image"), Normalization::kMeanStd);
  EXPECT_EQ(file.modes.at("action"), Normalization::kMinMax);
}

TEST(ConfigParser, ReadsTheOldestConfig) {
  Json json = LeRobotConfig();
  for (const char* key : {"type", "input_features", "output_features", "normalization_mapping",
                          "resize_shape", "crop_ratio", "use_separate_rgb_encoder_per_camera"}) {
    json.erase(key);
  }
  json["input_shapes"] = {{"observation.environment_state", {16}}, {"observation.state", {2}}};
  json["output_shapes"] = {{"action", {2}}};
  json["input_normalization_modes"] = {{"observation.environment_state", "min_max"},
                                       {"observation.state", "mean_std"}};
  json["output_normalization_modes"] = {{"action", "min_max"}};
  const mjp::ConfigFile file = mjp::ParseConfig(json, "config.json");
  EXPECT_EQ(file.policy.type, "diffusion");
  EXPECT_EQ(file.policy.environment_dim, 16);
  EXPECT_TRUE(file.policy.cameras.empty());
  EXPECT_EQ(UnetConfigOf(file).CondDim(), 36);
  EXPECT_EQ(file.modes.at("observation.state"), Normalization::kMeanStd);
  EXPECT_EQ(file.policy.state_dim, 2);
  EXPECT_EQ(file.policy.action_dim, 2);
  EXPECT_EQ(file.modes.at("action"), Normalization::kMinMax);
  Json odd = json;
  odd["input_normalization_modes"].erase("observation.state");
  EXPECT_THAT(RefusalOf(odd), HasSubstr("observation.state"));
  odd = json;
  odd["input_normalization_modes"]["observation.velocity"] = "min_max";
  EXPECT_THAT(RefusalOf(odd), HasSubstr("observation.velocity"));
  odd = json;
  odd["output_shapes"]["force"] = {2};
  EXPECT_THAT(RefusalOf(odd), HasSubstr("other than \"action\""));
  odd = json;
  odd["input_shapes"] = Json::array();
  EXPECT_THAT(RefusalOf(odd), HasSubstr("must be an object"));
}

TEST(ConfigParser, CamerasKeepTheFilesOrder) {
  Json json = LeRobotConfig();
  const Json image = json["input_features"]["observation.image"];
  json["input_features"] = {{"observation.images.wrist", image},
                            {"observation.state", {{"type", "STATE"}, {"shape", {2}}}},
                            {"observation.images.above", image}};
  json["use_separate_rgb_encoder_per_camera"] = true;
  const mjp::UnetPolicyConfig config = Parse(json);
  ASSERT_EQ(config.cameras.size(), 2u);
  EXPECT_EQ(config.cameras[0].name, "observation.images.wrist");
  EXPECT_EQ(config.CondDim(), 2 * (2 + 2 * 64));
  json["input_features"]["observation.images.above"]["shape"] = {3, 96, 128};
  EXPECT_THAT(RefusalOf(json), HasSubstr("observation.images.above"));
}

TEST(ConfigParser, DerivesTheCropFromTheRatio) {
  Json json = LeRobotConfig();
  json["resize_shape"] = {90, 120};
  json["crop_ratio"] = 0.9;
  mjp::EncoderConfig encoder = Parse(json).encoder;
  EXPECT_EQ(encoder.resize_width, 120);
  EXPECT_EQ(encoder.crop_height, 81);
  EXPECT_EQ(encoder.crop_width, 108);
  json["crop_ratio"] = 1.0;  // then crop_shape is ignored, as LeRobot does
  encoder = Parse(json).encoder;
  EXPECT_EQ(encoder.crop_height, 0);
}

TEST(ConfigParser, ReadsTheCompactConfig) {
  const Json json = CompactConfig();
  const mjp::UnetPolicyConfig config = Parse(json);
  EXPECT_EQ(config.encoder.kind, mjp::EncoderKind::kCompact);
  EXPECT_EQ(config.encoder.stem_channels, 32);
  EXPECT_FALSE(config.encoder.stem_max_pool);
  EXPECT_FALSE(config.encoder.feature_relu);
  for (const auto& [key, value] : json["compact_encoder"].items()) {
    Json lacking = json;
    lacking["compact_encoder"].erase(key);
    EXPECT_THAT(RefusalOf(lacking), HasSubstr(key));
  }
}

struct BadValue {
  const char* key;
  Json value;
};

TEST(ConfigParser, NamesTheKeyOfEveryUnsupportedValue) {
  const BadValue bad[] = {
      {"type", "pi0"},
      {"type", 3},
      {"vision_backbone", "resnet50"},
      {"crop_shape", {100, 100}},
      {"crop_shape", {84}},
      {"crop_ratio", 0.0},
      {"resize_shape", {0, 10}},
      {"use_group_norm", "yes"},
      {"use_group_norm", nullptr},
      {"spatial_softmax_num_keypoints", 0},
      {"down_dims", Json::array()},
      {"down_dims", {512, -1}},
      {"down_dims", {512, 100000}},
      {"down_dims", {512, 1e3}},
      {"down_dims", {12, 24}},
      {"kernel_size", 4},
      {"n_groups", 7},
      {"n_groups", 1e99},
      {"diffusion_step_embed_dim", 5},
      {"horizon", 12},
      {"horizon", nullptr},
      {"n_obs_steps", 0},
      {"n_action_steps", 16},
      {"noise_scheduler_type", "DPM"},
      {"num_train_timesteps", 1001},
      {"num_train_timesteps", 0},
      {"num_inference_steps", 101},
      {"beta_schedule", "scaled_linear"},
      {"beta_start", -0.1},
      {"prediction_type", "flow"},
      {"clip_sample", 1},
      {"clip_sample_range", 0},
      {"temperature", -0.5},
      {"temperature", 2.5},
      {"replan_every", 9},
      {"replan_every", 0},
      {"replan_beyond", 20},
      {"use_peft", true},
      {"something_new", 1},
      {"normalization_mapping", {{"STATE", "LOG"}}},
      {"input_features", {{"observation.velocity", {{"type", "STATE"}, {"shape", {2}}}}}},
      {"input_features", Json::array()},
      {"output_features", {{"force", {{"type", "ACTION"}, {"shape", {2}}}}}},
  };
  for (const BadValue& each : bad) {
    Json json = LeRobotConfig();
    json[each.key] = each.value;
    EXPECT_THAT(RefusalOf(json), HasSubstr(each.key)) << each.value;
  }
  Json json = LeRobotConfig();
  json["use_ema"] = true;
  json["ema_power"] = 0.75;
  json["something_new"] = nullptr;
  EXPECT_EQ(RefusalOf(json), "");
}

Json CameraOf(int channels, int height, int width) {
  return {{"type", "VISUAL"}, {"shape", {channels, height, width}}};
}

TEST(ConfigParser, CamerasAreRgbAndOfOneSize) {
  const Json config = LeRobotConfig();
  const auto refusal = [&](const Json& second) {
    Json json = config;
    json["input_features"]["observation.images.second"] = second;
    return RefusalOf(json);
  };
  EXPECT_EQ(refusal(CameraOf(3, 96, 96)), "");
  EXPECT_THAT(refusal(CameraOf(4, 96, 96)), HasSubstr("must be [3, height, width]"));
  EXPECT_THAT(refusal(CameraOf(3, 95, 96)), HasSubstr("all pictures must have one size"));
  EXPECT_THAT(refusal(CameraOf(3, 96, 97)), HasSubstr("all pictures must have one size"));
  EXPECT_THAT(refusal({{"type", "VISUAL"}, {"shape", {3, 96}}}), HasSubstr("\"shape\""));
  EXPECT_THAT(refusal({{"type", "VISUAL"}, {"shape", {3, 96, 96, 1}}}), HasSubstr("\"shape\""));
  Json more = CameraOf(3, 96, 96);
  more["fps"] = 10;
  EXPECT_THAT(refusal(more), HasSubstr("\"fps\""));
}

TEST(ConfigParser, SixteenCamerasAreTheMost) {
  Json json = LeRobotConfig();
  for (int i = 1; i < 16; ++i) {
    json["input_features"]["observation.images." + std::to_string(i)] = CameraOf(3, 96, 96);
  }
  EXPECT_EQ(Parse(json).cameras.size(), 16u);
  json["input_features"]["observation.images.16"] = CameraOf(3, 96, 96);
  EXPECT_THAT(RefusalOf(json), HasSubstr("is that of a 17th camera"));
}

TEST(ConfigParser, VectorsHaveOneDimensionOfBoundedSize) {
  const auto refusal = [](const Json& shape) {
    Json json = LeRobotConfig();
    json["input_features"]["observation.state"]["shape"] = shape;
    return RefusalOf(json);
  };
  EXPECT_EQ(refusal({1}), "");
  EXPECT_EQ(refusal({8192}), "");
  for (const Json& odd : {Json{8193}, Json{0}, Json{2, 2}, Json::array()}) {
    EXPECT_THAT(refusal(odd), HasSubstr("\"shape\"")) << odd;
  }
}

TEST(ConfigParser, InputsHaveTheNameAndTheTypeTogether) {
  const auto refusal = [](const char* name, const char* type) {
    Json json = LeRobotConfig();
    json["input_features"][name] = {{"type", type}, {"shape", {2}}};
    return RefusalOf(json);
  };
  EXPECT_EQ(refusal("observation.environment_state", "ENV"), "");
  for (const auto& [name, type] :
       {std::pair("observation.environment_state", "STATE"), std::pair("observation.state", "ENV"),
        std::pair("observation.velocity", "ENV"), std::pair("observation.velocity", "STATE")}) {
    EXPECT_THAT(refusal(name, type), HasSubstr("does not fit the name")) << name << " " << type;
  }
}

TEST(ConfigParser, OutputsAreTheActionAlone) {
  Json json = LeRobotConfig();
  json["output_features"]["force"] = json["output_features"]["action"];
  EXPECT_THAT(RefusalOf(json), HasSubstr("\"force\""));
  json = LeRobotConfig();
  json["output_features"]["action"]["type"] = "STATE";
  EXPECT_THAT(RefusalOf(json), HasSubstr("ACTION"));
  json = LeRobotConfig();
  json["output_features"]["action"]["fps"] = 10;
  EXPECT_THAT(RefusalOf(json), HasSubstr("\"fps\""));
}

TEST(ConfigParser, ModesAreKnownByTheirNames) {
  const auto mode = [](const Json& text) { return mjp::ParseNormalization(text, "here"); };
  EXPECT_EQ(mode("IDENTITY"), Normalization::kIdentity);
  EXPECT_EQ(mode("MEAN_STD"), Normalization::kMeanStd);
  EXPECT_EQ(mode("min_max"), Normalization::kMinMax);
  EXPECT_EQ(mode("Quantiles"), Normalization::kQuantiles);
  EXPECT_EQ(mode("QUANTILE10"), Normalization::kQuantile10);
  EXPECT_THROW(mode("QUANTILE"), mjp::Error);
  EXPECT_THROW(mode(3), mjp::Error);
}

TEST(ConfigParser, ATypeWithoutAModeIsLeftOrKeptAsItIs) {
  const std::map<std::string, Normalization> modes = {{"ENV", Normalization::kMinMax}};
  EXPECT_EQ(mjp::ModeOfType(modes, "ENV"), Normalization::kMinMax);
  EXPECT_EQ(mjp::ModeOfType(modes, "VISUAL"), Normalization::kIdentity);
  EXPECT_EQ(mjp::ModeOfType(modes, "STATE"), std::nullopt);
  EXPECT_EQ(mjp::ModeOfType(modes, "ACTION"), std::nullopt);
  Json json = LeRobotConfig();
  json["normalization_mapping"] = {{"ACTION", "MIN_MAX"}, {"REWARD", "IDENTITY"}};
  const mjp::ConfigFile file = mjp::ParseConfig(json, "config.json");
  EXPECT_FALSE(file.modes.contains("observation.state"));
  EXPECT_EQ(file.modes.at("observation.image"), Normalization::kIdentity);
  json["normalization_mapping"] = {{"SOUND", "IDENTITY"}};
  EXPECT_THAT(RefusalOf(json), HasSubstr("there are VISUAL, STATE, ENV, ACTION, REWARD, LANGUAGE"));
  json["normalization_mapping"] = 3;
  EXPECT_THAT(RefusalOf(json), HasSubstr("must be an object"));
}

TEST(ConfigParser, RefusesWhatIsNoObject) {
  EXPECT_NE(RefusalOf(Json::array()), "");
  EXPECT_NE(RefusalOf(Json(nullptr)), "");
  EXPECT_THAT(RefusalOf(Json::object()), HasSubstr("\"type\""));
}

TEST(ConfigParser, ReadsTheDocumentedExamples) {
  std::ifstream file(std::string(MJPOLICY_SOURCE_DIR) + "/docs/CHECKPOINTS.md");
  std::vector<std::string> examples;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "    {") {
      examples.emplace_back();
      inside = true;
    }
    if (inside) examples.back() += line + "\n";
    if (line == "    }") inside = false;
  }
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(Parse(mjp::ParseJson(examples[0], "config.json")).type, "diffusion_compact");
  const mjp::UnetPolicyConfig notebook = Parse(mjp::ParseJson(examples[1], "config.json"));
  EXPECT_EQ(notebook.type, "diffusion_notebook");
  EXPECT_EQ(notebook.CondDim(), 1028);
}

TEST(ConfigParser, APolicyNeedsState) {
  Json json = LeRobotConfig();
  json["input_features"].erase("observation.state");
  EXPECT_THAT(RefusalOf(json), HasSubstr("observation.state"));
}

}  // namespace
}  // namespace mjp_test

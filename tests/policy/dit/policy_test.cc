#include "policy/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "kernels/shared/crop.h"
#include "policy/checkpoint/checkpoint.h"
#include "tests/policy/dit/dit_checks.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/error_of.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp::Checkpoint;
using mjp::DitConfig;
using mjp_test::RandomFloats;
using mjp_test::SmallDitConfig;
using mjp_test::TempDir;
using mjp_test::WriteSmallDit;
using testing::HasSubstr;

mjp::PolicyOptions Options(int batch, int threads) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.batch = batch;
  options.threads = threads;
  return options;
}

// Observations of some environments, each with an instruction of its own.
struct Observations {
  std::vector<uint8_t> frames;
  std::vector<float> state;
  std::vector<std::string> texts;
  std::vector<mjp::NoiseKey> keys;

  Observations(const mjp::PolicyConfig& config, int first, int count) {
    const int size = config.n_obs_steps * config.cameras[0].height * config.cameras[0].width * 3;
    for (int n = first; n < first + count; ++n) {
      for (const float v : RandomFloats(size, 10 + n)) {
        frames.push_back(static_cast<uint8_t>(127.5f * (v + 1)));
      }
      for (const float v : RandomFloats(size_t{1} * config.n_obs_steps * config.state_dim, n)) {
        state.push_back(v);
      }
      texts.emplace_back(n % 2 == 0 ? "ab c" : "Cab");
      keys.push_back({static_cast<uint64_t>(100 + n), 3});
    }
  }

  mjp::PolicyInput Input() const {
    mjp::PolicyInput input;
    input.count = static_cast<int>(keys.size());
    input.frames = frames;
    input.state = state;
    input.instructions = texts;
    input.keys = keys;
    return input;
  }
};

std::vector<float> Infer(const std::shared_ptr<const Checkpoint>& checkpoint,
                         const mjp::PolicyOptions& options, const mjp::PolicyInput& input) {
  mjp::PolicyOutput output;
  mjp::Policy::Create(checkpoint, options)->Infer(input, output);
  return output.actions;
}

DitConfig FlowConfig(mjp::SamplerKind kind) {
  DitConfig config = SmallDitConfig(true);
  config.objective = mjp::DitObjective::kFlowMatching;
  config.integration = kind;
  return config;
}

TEST(DitPolicyTest, NeighboursThreadsAndBatchChangeNoBit) {
  for (const DitConfig& config :
       {SmallDitConfig(true), SmallDitConfig(false), FlowConfig(mjp::SamplerKind::kRk4)}) {
    const TempDir dir;
    const auto checkpoint = mjp::LoadCheckpoint(WriteSmallDit(dir, "policy", config));
    const Observations all(config, 0, 5);
    const std::vector<float> together = Infer(checkpoint, Options(5, 1), all.Input());
    EXPECT_EQ(Infer(checkpoint, Options(7, 3), all.Input()), together);
    const size_t size = together.size() / 5;
    for (int n = 0; n < 5; ++n) {
      const Observations one(config, n, 1);
      const auto begin = together.begin() + static_cast<ptrdiff_t>(n * size);
      EXPECT_EQ(Infer(checkpoint, Options(1, 2), one.Input()),
                std::vector<float>(begin, begin + static_cast<ptrdiff_t>(size)));
    }
  }
}

TEST(DitPolicyTest, TheInstructionMatters) {
  const TempDir dir;
  const DitConfig config = SmallDitConfig(true);
  const auto checkpoint = mjp::LoadCheckpoint(WriteSmallDit(dir, "policy", config));
  const Observations one(config, 0, 1);
  mjp::PolicyInput input = one.Input();
  const std::vector<float> said = Infer(checkpoint, Options(1, 1), input);
  input.instructions = {};
  mjp::PolicyOptions options = Options(1, 1);
  options.instruction = "  AB  c ";  // the same to the tokenizer
  EXPECT_EQ(Infer(checkpoint, options, input), said);
  options.instruction = "c";
  EXPECT_NE(Infer(checkpoint, options, input), said);
  options.instruction = "";
  EXPECT_THAT(mjp_test::ErrorOf([&] { Infer(checkpoint, options, input); }),
              HasSubstr("--instruction"));
  options.instruction = "d";
  EXPECT_THAT(mjp_test::ErrorOf([&] { Infer(checkpoint, options, input); }),
              HasSubstr("instruction \"d\": the vocabulary has no \"d</w>\""));
}

// Windows of steps come to the sequential chain's result.
TEST(DitPolicyTest, ParallelWindowsAgreeWithTheChain) {
  const TempDir dir;
  const DitConfig config = SmallDitConfig(true);
  const auto checkpoint = mjp::LoadCheckpoint(WriteSmallDit(dir, "policy", config));
  const Observations two(config, 0, 2);
  const std::vector<float> chain = Infer(checkpoint, Options(2, 1), two.Input());
  mjp::PolicyOptions options = Options(2, 2);
  options.sampler.parallel_window = 5;
  EXPECT_TRUE(mjp_test::CheckClose(Infer(checkpoint, options, two.Input()), chain, 0.02));
  options.sampler = {.kind = mjp::SamplerKind::kEuler};
  EXPECT_THAT(mjp_test::ErrorOf([&] { Infer(checkpoint, options, two.Input()); }),
              HasSubstr("knows ddpm"));
}

TEST(DitPolicyTest, IntegratorsOfAFlowCanBeChosen) {
  const TempDir dir;
  const auto checkpoint =
      mjp::LoadCheckpoint(WriteSmallDit(dir, "policy", FlowConfig(mjp::SamplerKind::kEuler)));
  const Observations one(checkpoint->config, 0, 1);
  mjp::PolicyOptions options = Options(1, 1);
  options.sampler.steps = 400;
  const std::vector<float> fine = Infer(checkpoint, options, one.Input());
  options.sampler = {.kind = mjp::SamplerKind::kRk4, .steps = 10};
  EXPECT_TRUE(mjp_test::CheckClose(Infer(checkpoint, options, one.Input()), fine, 0.02));
  options.sampler.parallel_window = 8;
  EXPECT_THAT(mjp_test::ErrorOf([&] { Infer(checkpoint, options, one.Input()); }),
              HasSubstr("parallel window = 8: allowed are 0 to 1"));
  options.sampler = {.kind = mjp::SamplerKind::kDdpm};
  EXPECT_THAT(mjp_test::ErrorOf([&] { Infer(checkpoint, options, one.Input()); }),
              HasSubstr("knows euler, rk4"));
}

TEST(DitPolicyTest, ParallelWindowsAgreeWithTheFlow) {
  const TempDir dir;
  const auto checkpoint =
      mjp::LoadCheckpoint(WriteSmallDit(dir, "policy", FlowConfig(mjp::SamplerKind::kEuler)));
  const Observations two(checkpoint->config, 0, 2);
  mjp::PolicyOptions options = Options(2, 1);
  options.sampler.steps = 40;
  const std::vector<float> chain = Infer(checkpoint, options, two.Input());
  options.sampler.parallel_window = 8;
  EXPECT_TRUE(mjp_test::CheckClose(Infer(checkpoint, options, two.Input()), chain, 2e-3));
}

// The loader says what is wrong with a directory after one change to it.
std::string LoadError(const DitConfig& config,
                      const std::function<void(const TempDir&, const std::string&)>& damage) {
  const TempDir dir;
  const std::string path = WriteSmallDit(dir, "policy", config);
  damage(dir, path);
  return mjp_test::ErrorOf([&] { mjp::LoadCheckpoint(path); });
}

void ReplaceInConfig(const std::string& path, const std::string& from, const std::string& to) {
  std::ifstream in(path + "/config.json");
  std::string text(std::istreambuf_iterator<char>(in), {});
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  std::ofstream(path + "/config.json") << text;
}

TEST(DitLoaderTest, SaysWhatIsWrong) {
  const auto replaced = [](const char* from, const char* to) {
    return LoadError(SmallDitConfig(true), [&](const TempDir&, const std::string& path) {
      ReplaceInConfig(path, from, to);
    });
  };
  EXPECT_THAT(replaced("\"hidden_dim\"", "\"warp\": 1, \"hidden_dim\""), HasSubstr("warp"));
  EXPECT_THAT(replaced("\"num_heads\": 4", "\"num_heads\": 5"), HasSubstr("num_heads"));
  EXPECT_THAT(replaced("\"num_layers\": 2", "\"num_layers\": 1"),
              HasSubstr("noise_predictor.transformer_blocks.1"));
  EXPECT_THAT(replaced("\"num_layers\": 2", "\"num_layers\": 3"),
              HasSubstr("lacks tensor \"noise_predictor.transformer_blocks.2"));
  EXPECT_THAT(replaced("\"use_rope\": true", "\"use_rope\": false"),
              HasSubstr("multihead_attn.in_proj_weight"));
  EXPECT_THAT(replaced("clip-small", "../clip"), HasSubstr("is no name of a CLIP model"));
  EXPECT_THAT(replaced("clip-small", "some/clip"), HasSubstr("how many heads"));
  EXPECT_THAT(replaced("\"objective\": \"diffusion\"", "\"objective\": \"magic\""),
              HasSubstr("diffusion, flow_matching"));
}

TEST(DitLoaderTest, NeedsPicturesOfTheTowersSize) {
  DitConfig config = SmallDitConfig(true);
  config.crop_height = 0, config.crop_width = 0;
  EXPECT_THAT(mjp_test::ErrorOf([&] { mjp_test::SmallDit(config); }),
              HasSubstr("looks at 12x12; set image_resize_shape to [12, 12]"));
}

TEST(DitLoaderTest, RunsWithoutATokenizerWhereNoTextIsRead) {
  const TempDir dir;
  const DitConfig config = SmallDitConfig(true);
  const std::string path = WriteSmallDit(dir, "policy", config);
  std::filesystem::remove(path + "/clip-small/merges.txt");
  const auto checkpoint = mjp::LoadCheckpoint(path);
  const Observations one(config, 0, 1);
  EXPECT_THAT(mjp_test::ErrorOf([&] { Infer(checkpoint, Options(1, 1), one.Input()); }),
              HasSubstr("put vocab.json and merges.txt of clip-small into"));
  mjp::PolicyInput input;
  input.count = 1;
  input.keys = one.keys;
  const std::vector<float> cond(checkpoint->network->cond_dim(), 0.1f);
  input.global_cond = cond;
  EXPECT_EQ(Infer(checkpoint, Options(1, 1), input).size(), 16u);
}

TEST(CropOffsetTest, RoundsTiesToEven) {
  EXPECT_EQ(mjp::CropOffset(10, 10), 0);
  EXPECT_EQ(mjp::CropOffset(96, 84), 6);
  EXPECT_EQ(mjp::CropOffset(53, 48), 2);
  EXPECT_EQ(mjp::CropOffset(55, 48), 4);
  EXPECT_EQ(mjp::CropOffset(49, 48), 0);
  EXPECT_EQ(mjp::CropOffset(51, 48), 2);
}

// The directory that the library wrote, unmodified.
TEST(DitLoaderTest, ReadsTheLibrarysDirectory) {
  SHARED_OR_SKIP(path, "goldens_act_dit/p_dit_tiny");
  const auto checkpoint = mjp::LoadCheckpoint(path);
  // the 64 values of post_layernorm are in the file and not read
  EXPECT_EQ(checkpoint->parameter_count,
            mjp_test::DitCase("dit_tiny")["parameters"].get<int64_t>() - 64);
  EXPECT_TRUE(checkpoint->files.contains("clip-tiny/vocab.json"));
  const mjp_test::DitInputs inputs("dit_tiny", checkpoint->config);
  const mjp::SafetensorsFile file = mjp_test::DitTensors("dit_tiny_euler10");
  EXPECT_TRUE(mjp_test::CheckClose(Infer(checkpoint, Options(1, 2), inputs.input),
                                   file.Floats("out/action_full.f64").data,
                                   mjp_test::kActionLimit));
}

}  // namespace

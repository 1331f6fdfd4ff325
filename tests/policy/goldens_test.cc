#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/checkpoint/checkpoint.h"
#include "policy/cpu/encoder.h"
#include "policy/unet/unet_model.h"
#include "tests/policy/golden_checks.h"
#include "tests/support/goldens/completed_checkpoint.h"
#include "tests/support/temp_dir.h"

// The CPU policy against what LeRobot, diffusers and the original code computed, in float64.

namespace {

using mjp_test::CheckClose;
using mjp_test::GoldenCase;
using mjp_test::GoldenRun;
using mjp_test::ReadGolden;

class Goldens : public testing::TestWithParam<GoldenRun> {};

TEST_P(Goldens, ChainAgreesAtEveryStep) {
  SHARED_OR_SKIP(path, std::string("goldens/") + GetParam().file + ".safetensors");
  mjp_test::CheckChain(GetParam());
}

TEST_P(Goldens, EveryStepAloneAgrees) {
  SHARED_OR_SKIP(path, std::string("goldens/") + GetParam().file + ".safetensors");
  mjp_test::CheckStepsAlone(GetParam());
}

// windows of steps, clipping included: their last x beside that of the chain in float64
TEST_P(Goldens, TimeParallelChainEndsWhereTheChainDoes) {
  const GoldenRun& golden = GetParam();
  SHARED_OR_SKIP(path, std::string("goldens/") + golden.file + ".safetensors");
  const std::vector<float> steps = ReadGolden(golden.file).Floats("out/x_steps.f64").data;
  const auto elements = static_cast<ptrdiff_t>(steps.size() / golden.steps);
  const std::vector<float> expected(steps.end() - elements, steps.end());
  const mjp_test::GoldenInputs inputs(golden, 1);
  const auto checkpoint = mjp_test::GoldenCheckpoint(golden.network);
  for (const auto& [tolerance, limit] : {std::pair{0.01f, 3e-3}, {1e-4f, 6e-5}}) {
    mjp::PolicyOptions options = mjp_test::CpuOptions(golden.kind, golden.steps);
    options.sampler.parallel_window = 16;
    options.sampler.parallel_tolerance = tolerance;
    mjp::PolicyTrace trace;
    mjp::PolicyOutput output;
    output.trace = &trace;
    mjp::Policy::Create(checkpoint, options)->Infer(inputs.input, output);
    EXPECT_LE(output.times.passes, std::min(40, golden.steps));
    const std::vector<float> last(trace.x_steps.end() - elements, trace.x_steps.end());
    EXPECT_TRUE(CheckClose(last, expected, limit)) << "tolerance " << tolerance;
  }
}

// all but the largest network, which has a test of its own
INSTANTIATE_TEST_SUITE_P(All, Goldens,
                         testing::ValuesIn(mjp_test::kGoldenRuns,
                                           mjp_test::kGoldenRuns +
                                               std::size(mjp_test::kGoldenRuns) - 1),
                         [](const auto& info) { return std::string(info.param.file); });

// three environments with conditions and timesteps of their own in one batch
TEST(UnetGoldens, MixedBatch) {
  SHARED_OR_SKIP(path, "goldens/c_notebook_unet.safetensors");
  const mjp::SafetensorsFile file = ReadGolden("c_notebook_unet");
  const auto eps = [&](const std::vector<int>& step) {
    return mjp_test::EpsOf(*mjp_test::GoldenCheckpoint(GoldenCase::kNotebook), {99, 50, 0},
                           file.Floats("in/cond_batch3").data, 3, file.Floats("in/x_batch3").data,
                           step, {0, 1, 2});
  };
  EXPECT_TRUE(CheckClose(eps({0, 1, 2}), file.Floats("out/eps_batch3_tmixed.f64").data,
                         mjp_test::kEpsLimit));
  EXPECT_TRUE(
      CheckClose(eps({1, 1, 1}), file.Floats("out/eps_batch3_t50.f64").data, mjp_test::kEpsLimit));
}

// (maps, channels, height, width) of channel-last maps
std::vector<float> ChannelsFirst(const mjp::cpu::Features& x, int count) {
  std::vector<float> values;
  for (int n = 0; n < count; ++n) {
    for (int c = 0; c < x.channels; ++c) {
      for (int h = 0; h < x.height; ++h) {
        for (int w = 0; w < x.width; ++w) values.push_back(x.At(n, h, w)[c]);
      }
    }
  }
  return values;
}

class EncoderGoldens : public testing::TestWithParam<GoldenRun> {};

TEST_P(EncoderGoldens, EveryStageAgrees) {
  const bool notebook = GetParam().network == GoldenCase::kNotebook;
  const std::string name = GetParam().frames;
  SHARED_OR_SKIP(path, "goldens/" + name + ".safetensors");
  const mjp::SafetensorsFile file = ReadGolden(name);
  const auto checkpoint = mjp_test::GoldenCheckpoint(GetParam().network);
  const mjp::UnetPolicyConfig& config = mjp::UnetOf(*checkpoint).config;
  mjp::cpu::ThreadPool pool(2);
  mjp::cpu::Encoder encoder(
      mjp::cpu::PackEncoder(config.encoder, mjp::UnetOf(*checkpoint).encoders[0]), config.encoder,
      config.cameras[0], checkpoint->stats.cameras[0], 3, pool);
  const std::vector<uint8_t> frames = file.Bytes("in/frames_u8");
  std::vector<float> features(2 * config.encoder.feature_dim);
  encoder.Prepare(frames.data(), config.cameras[0].width * config.cameras[0].height * 3, 2);
  encoder.Encode(2, features.data());
  EXPECT_TRUE(CheckClose(features, file.Floats("out/features.f64").data, mjp_test::kCondLimit));
  EXPECT_TRUE(CheckClose(ChannelsFirst(encoder.feature_map(), 2),
                         file.Floats(notebook ? "out/layer4.f64" : "out/backbone.f64").data,
                         mjp_test::kMapLimit));
  if (notebook) return;
  std::vector<float> keypoints(2 * 32 * 2);
  std::copy_n(encoder.keypoints().data(), keypoints.size(), keypoints.begin());
  EXPECT_TRUE(CheckClose(keypoints, file.Floats("out/keypoints.f64").data, mjp_test::kCondLimit));
  if (file.Find("out/cropped.f64") == nullptr) return;
  EXPECT_TRUE(
      CheckClose(ChannelsFirst(encoder.input(), 2), file.Floats("out/cropped.f64").data, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(All, EncoderGoldens,
                         testing::Values(mjp_test::kGoldenRuns[0], mjp_test::kGoldenRuns[1]),
                         [](const auto& info) { return std::string(info.param.frames); });

// directories as LeRobot writes them, loaded, then run
void CheckDirectory(const std::string& directory, const std::string& prefix) {
  const mjp::SafetensorsFile file = ReadGolden("g_new_expected");
  const auto checkpoint = mjp::LoadCheckpoint(directory);
  const bool image = prefix == "image/";
  const std::vector<float> x_start = file.Floats("in/x_T").data;
  const std::vector<float> noise = file.Floats("in/noise_by_t").data;
  const std::vector<float> state = file.Floats("in/agent_pos").data;
  const std::vector<float> environment = file.Floats("in/env_state").data;
  const std::vector<uint8_t> frames = file.Bytes("in/frames_u8");
  mjp::PolicyInput input;
  input.count = 1;
  input.state = state;
  input.x_start = x_start;
  input.noise_by_t = noise;
  if (image) {
    input.frames = frames;
  } else {
    input.environment = environment;
  }
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  mjp::Policy::Create(checkpoint, mjp_test::CpuOptions(
                                      image ? mjp::SamplerKind::kDdim : mjp::SamplerKind::kDdpm, 0))
      ->Infer(input, output);
  EXPECT_TRUE(CheckClose(trace.global_cond, file.Floats(prefix + "global_cond").data,
                         mjp_test::kCondLimit));
  EXPECT_TRUE(CheckClose(trace.x_steps, file.Floats(prefix + "x_steps").data, mjp_test::kXLimit));
  EXPECT_TRUE(CheckClose(output.actions, file.Floats(prefix + "action_full").data, 1e-2));
}

TEST(DirectoryGoldens, StatePolicy) {
  SHARED_OR_SKIP(path, "goldens/g_new_state");
  CheckDirectory(path, "state/");
}

TEST(DirectoryGoldens, ImagePolicy) {
  SHARED_OR_SKIP(path, "goldens/g_new_image");
  const mjp_test::TempDir directory;
  mjp_test::CompleteBackbone(path, directory.path());
  CheckDirectory(directory.path(), "image/");
}

}  // namespace

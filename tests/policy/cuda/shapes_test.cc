#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/cuda_policy.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"

// Networks of odd shapes on the GPU against the CPU backend, which shares no arithmetic with it.

namespace {

using mjp::Precision;

struct Shape {
  const char* name;
  std::vector<int> down_dims;
  int horizon, kernel, groups, batch;
  bool pictures = false, group_norm = true;
  int action_dim = 2;
  mjp::PoolKind pool = mjp::PoolKind::kSpatialSoftmax;
  int cameras = 1;
  bool separate = false;  // an encoder for each
};

const Shape kShapes[] = {
    {"narrowest", {8, 16}, 8, 3, 8, 1},
    {"one level", {16}, 16, 5, 8, 2},
    {"four levels", {8, 16, 24, 40}, 64, 3, 8, 1},
    {"no power of two", {24, 40, 72}, 12, 5, 4, 3},
    {"four groups", {64, 128, 256}, 32, 3, 4, 5},
    {"many actions", {32, 64}, 16, 5, 8, 1, false, true, 7},
    {"long horizon", {128, 256, 512}, 64, 5, 8, 2},
    {"row kernel, three rows", {128, 256, 512}, 16, 5, 8, 3},
    {"row kernel, 32 rows", {128, 256, 512}, 16, 5, 8, 32},
    {"four groups of 128 channels", {128, 256, 512}, 16, 5, 4, 3},
    {"four groups of 128 channels, 32 rows", {128, 256, 512}, 16, 5, 4, 32},
    {"megakernel, one row", {256, 512, 1024}, 16, 5, 8, 1},
    {"megakernel, 32 rows", {256, 512, 1024}, 16, 5, 8, 32},
    {"megakernel, 19 rows", {256, 512, 1024}, 16, 5, 8, 19},
    {"megakernel, 33 rows", {256, 512, 1024}, 16, 5, 8, 33},
    {"megakernel, short, 32 rows", {256, 512, 1024}, 8, 5, 8, 32},
    {"megakernel, many actions, one row", {256, 512, 1024}, 16, 5, 8, 1, false, true, 7},
    {"megakernel, many actions, 32 rows", {256, 512, 1024}, 16, 5, 8, 32, false, true, 14},
    {"horizon 24, many actions", {64, 128, 256}, 24, 5, 8, 5, false, true, 9},
    {"most actions", {64, 128}, 16, 5, 8, 20, false, true, 16},
    {"more actions", {64, 128}, 16, 5, 8, 2, false, true, 17},
    {"shortest", {64}, 2, 5, 8, 1, false, true, 3},
    {"widest", {512, 1024, 2048}, 16, 5, 8, 1},
    {"widest, batch", {512, 1024, 2048}, 16, 5, 8, 8},
    {"widest, 17 rows", {512, 1024, 2048}, 16, 5, 8, 17},
    {"widest, kernel 3, horizon 8", {1024, 2048}, 8, 3, 8, 40},
    {"large batch", {64, 96, 128}, 16, 5, 8, 130},
    {"pictures", {16, 32}, 16, 3, 8, 1, true},
    {"pictures, batch", {16, 32}, 16, 3, 8, 9, true},
    {"BatchNorm folded", {16, 32}, 16, 5, 8, 3, true, false},
    {"average pool", {16, 32}, 16, 5, 4, 2, true, true, 2, mjp::PoolKind::kAverage},
    {"two cameras", {16, 32}, 16, 5, 8, 2, true, true, 2, mjp::PoolKind::kSpatialSoftmax, 2},
    {"two cameras, two encoders",
     {16, 32},
     16,
     5,
     8,
     2,
     true,
     true,
     2,
     mjp::PoolKind::kSpatialSoftmax,
     2,
     true},
};

std::shared_ptr<const mjp::Checkpoint> MakeCheckpoint(const Shape& shape) {
  mjp::UnetPolicyConfig config;
  config.type = "diffusion";
  config.state_dim = 3;
  config.action_dim = shape.action_dim;
  config.horizon = shape.horizon;
  config.n_action_steps = std::min(4, shape.horizon - config.n_obs_steps + 1);
  config.unet.down_dims = shape.down_dims;
  config.unet.kernel_size = shape.kernel;
  config.unet.groups = shape.groups;
  config.unet.step_embed_dim = 16;
  mjp::NormalizerStats stats;
  stats.state = {mjp::Normalization::kMinMax, std::vector<float>(3, 0), std::vector<float>(3, 512)};
  stats.action = {mjp::Normalization::kMinMax, std::vector<float>(shape.action_dim, -1),
                  std::vector<float>(shape.action_dim, 1)};
  if (shape.pictures) {
    for (int i = 0; i < shape.cameras; ++i)
      config.cameras.push_back({"observation.images." + std::to_string(i), 3, 96, 96});
    config.encoder.separate_per_camera = shape.separate;
    config.encoder.kind = mjp::EncoderKind::kResNet18;
    config.encoder.group_norm = shape.group_norm;
    config.encoder.pool = shape.pool;
    if (shape.pool == mjp::PoolKind::kAverage) config.encoder.feature_dim = 512;
    stats.cameras = {{mjp::Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}},
                     {mjp::Normalization::kMeanStd, {0.3f, 0.4f, 0.6f}, {0.25f, 0.3f, 0.4f}}};
    stats.cameras.resize(shape.cameras);
  } else {
    config.environment_dim = 5;
    stats.environment = {mjp::Normalization::kMinMax, std::vector<float>(5, 0),
                         std::vector<float>(5, 512)};
  }
  return mjp::RandomCheckpoint(config, stats, 11);
}

// The chain, step by step, on observations that differ between environments.
mjp::PolicyTrace Denoise(const std::shared_ptr<const mjp::Checkpoint>& checkpoint,
                         mjp::Backend backend, Precision precision, int batch,
                         const mjp::SamplerOptions& sampler) {
  mjp::PolicyOptions options;
  options.self_check = false;  // the test is the check
  options.backend = backend;
  options.precision = precision;
  options.sampler = sampler;
  options.batch = batch;
  options.threads = 4;
  options.scene_drawer = &mjp::FlatSceneDrawer();
  const mjp::PolicyConfig& config = checkpoint->config;
  std::vector<float> state, environment;
  std::vector<mjp::FlatScene> scenes;  // of one camera
  std::vector<uint8_t> frames;         // of several
  std::vector<mjp::NoiseKey> keys;
  for (int i = 0; i < batch * config.n_obs_steps; ++i) {
    const auto at = static_cast<float>(20 + i * 37 % 400);
    for (int k = 0; k < config.state_dim; ++k) state.push_back(at + 9.0f * k);
    for (int k = 0; k < config.environment_dim; ++k) environment.push_back(at + 5.0f * k);
    if (config.cameras.size() == 1) scenes.push_back({at, 450 - at, 256, 300 - at / 4, 0.1f * i});
    for (size_t camera = 0; config.cameras.size() > 1 && camera < config.cameras.size(); ++camera)
      for (int k = 0; k < 96 * 96 * 3; ++k)
        frames.push_back(static_cast<uint8_t>(k / 288 + k % 288 / 3 + (40 + 9 * i) * (camera + 1)));
    if (i % config.n_obs_steps == 0) keys.push_back({1000u + i, 2});
  }
  mjp::PolicyInput input;
  input.count = batch;
  input.state = state;
  input.environment = environment;
  input.scenes = mjp::SceneBytes(scenes);
  input.frames = frames;
  input.keys = keys;
  mjp::PolicyOutput output;
  mjp::PolicyTrace trace;
  output.trace = &trace;
  mjp::Policy::Create(checkpoint, options)->Infer(input, output);
  return trace;
}

// The largest difference; infinite where a number is not finite or the sizes differ.
double Worst(const std::vector<float>& actual, const std::vector<float>& expected) {
  if (actual.size() != expected.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!std::isfinite(actual[i])) return INFINITY;
    worst = std::max(worst, std::abs(static_cast<double>(actual[i]) - expected[i]));
  }
  return worst;
}

class CudaShapes : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    std::string why;
    if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  }
};

TEST_P(CudaShapes, AgreesWithTheCpu) {
  const auto checkpoint = MakeCheckpoint(GetParam());
  const int batch = GetParam().batch;
  const mjp::SamplerOptions sampler = {mjp::SamplerKind::kDdim, 3};
  const std::vector<float> expected =
      Denoise(checkpoint, mjp::Backend::kCpu, Precision::kFp32, batch, sampler).eps_steps;
  // docs/NUMERICS.md: free-running, so the limits of x; in fp32 both sides may be that far off
  struct Format {
    const char* name;
    Precision precision;
    double limit;
  };
  for (const Format& format : {Format{"fp32", Precision::kFp32, 6e-5},
                               {"tf32", Precision::kTf32, 1e-2},
                               {"fp16", Precision::kFp16, 1e-2},
                               {"bf16", Precision::kBf16, 6e-2}}) {
    const auto trace = Denoise(checkpoint, mjp::Backend::kCuda, format.precision, batch, sampler);
    const double worst = Worst(trace.eps_steps, expected);
    std::printf("    %s %s: %.2g\n", GetParam().name, format.name, worst);
    EXPECT_LE(worst, format.limit) << format.name;
  }
}

std::string ShapeName(const testing::TestParamInfo<Shape>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, CudaShapes, testing::ValuesIn(kShapes), ShapeName);

// Windows of `batch` steps of one environment, as many rows.
class CudaWindows : public CudaShapes {};

TEST_P(CudaWindows, AgreeWithTheCpu) {
  const auto checkpoint = MakeCheckpoint(GetParam());
  mjp::SamplerOptions sampler = {mjp::SamplerKind::kDdpm, 40};
  sampler.parallel_window = GetParam().batch;
  sampler.parallel_tolerance = 0.01f;
  const auto last_x = [&](mjp::Backend backend, Precision precision) {
    const std::vector<float> x = Denoise(checkpoint, backend, precision, 1, sampler).x_steps;
    return std::vector<float>(x.end() - x.size() / sampler.steps, x.end());
  };
  const double worst = Worst(last_x(mjp::Backend::kCuda, Precision::kFp16),
                             last_x(mjp::Backend::kCpu, Precision::kFp32));
  std::printf("    %s: %.2g\n", GetParam().name, worst);
  EXPECT_LE(worst, 1e-2);  // as above
}

const Shape kWindows[] = {
    {"window 16, small", {128, 256, 512}, 16, 5, 8, 16},
    {"window 32", {256, 512, 1024}, 16, 5, 8, 32},
    {"window 16, widest", {512, 1024, 2048}, 16, 5, 8, 16},
    {"window 16, many actions", {256, 512, 1024}, 16, 5, 8, 16, false, true, 10},
};
INSTANTIATE_TEST_SUITE_P(All, CudaWindows, testing::ValuesIn(kWindows), ShapeName);

// What no kernel takes is refused when the policy is made, with what would be taken.
TEST(CudaShapesTest, OthersAreRefusedAtLoad) {
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  const auto refusal = [](const Shape& shape) -> std::string {
    mjp::PolicyOptions options;
    options.self_check = false;  // the test is the check
    options.backend = mjp::Backend::kCuda;
    try {
      mjp::Policy::Create(MakeCheckpoint(shape), options);
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal({"", {8, 12}, 16, 3, 4, 1}).find("multiples of 8"), std::string::npos);
  EXPECT_NE(refusal({"", {64, 128}, 4096, 3, 1, 1}).find("at most 65536"), std::string::npos);
}

}  // namespace

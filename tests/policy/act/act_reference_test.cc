#include "tests/support/act_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/thread_pool.h"
#include "policy/act/act_attention.h"
#include "policy/act/act_model.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/policy.h"
#include "tests/support/check_close.h"
#include "tests/support/goldens/act_cases.h"

// The CPU engine of ACT against its definition in double precision, and against itself. Limits:
// docs/NUMERICS.md, ACT.

namespace mjp_test {
namespace {

constexpr double kInnerLimit = 5e-5, kActionLimit = 1e-5;

struct Shape {
  const char* name;
  bool pre_norm;
  mjp::TokenActivation activation;
  bool state, environment;
  int cameras;
  int resnet = 18, decoder_layers = 2, environments = 1;
};

mjp::ActPolicyConfig ConfigOf(const Shape& shape) {
  mjp::ActPolicyConfig config = SmallActConfig();
  config.pre_norm = shape.pre_norm;
  config.activation = shape.activation;
  config.resnet = shape.resnet;
  config.decoder_layers = shape.decoder_layers;
  if (!shape.state) config.state_dim = 0;
  if (!shape.environment) config.environment_dim = 0;
  config.cameras.resize(shape.cameras);
  return config;
}

// Observations of some environments, all different.
struct Observations {
  std::vector<uint8_t> frames;
  std::vector<float> state, environment;
  mjp::PolicyInput input;

  Observations(const mjp::PolicyConfig& config, int count) {
    for (int n = 0; n < count; ++n) {
      for (const mjp::CameraFeature& camera : config.cameras)
        for (int i = 0; i < camera.height * camera.width * 3; ++i)
          frames.push_back(
              static_cast<uint8_t>((i * 13 + i / 97 * 29 + n * 71 + frames.size() % 5) % 256));
      for (int i = 0; i < config.state_dim; ++i) state.push_back(0.3f * (i + 1) - 0.7f * n);
      for (int i = 0; i < config.environment_dim; ++i) environment.push_back(0.9f - 0.4f * (i + n));
    }
    input.count = count;
    input.frames = frames;
    input.state = state;
    input.environment = environment;
  }

  // Those of environment n alone.
  mjp::PolicyInput Alone(int n) const {
    const auto part = [&](auto all) {
      const size_t size = all.size() / input.count;
      return all.subspan(n * size, size);
    };
    mjp::PolicyInput alone;
    alone.count = 1;
    alone.frames = part(input.frames);
    alone.state = part(input.state);
    alone.environment = part(input.environment);
    return alone;
  }
};

mjp::PolicyOutput Decide(const std::shared_ptr<const mjp::Checkpoint>& checkpoint,
                         const mjp::PolicyInput& input, int batch, int threads,
                         mjp::PolicyTrace* trace = nullptr) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.batch = batch;
  options.threads = threads;
  mjp::PolicyOutput output;
  output.trace = trace;
  mjp::Policy::Create(checkpoint, options)->Infer(input, output);
  return output;
}

// Environment n's part of a tensor (rows, environments, width); maps and vectors have n first.
std::vector<float> PartOf(const mjp::Tensor& tensor, const std::string& name, int n) {
  std::vector<float> part;
  const bool first =
      name.starts_with("norm/") || name.starts_with("layer4/") || name == "actions_norm";
  if (first) {
    const auto size = static_cast<ptrdiff_t>(tensor.data.size() / tensor.shape[0]);
    return {tensor.data.begin() + n * size, tensor.data.begin() + (n + 1) * size};
  }
  const int64_t places = tensor.shape[1], width = tensor.shape[2];
  for (int64_t r = 0; r < tensor.shape[0]; ++r) {
    const auto at = tensor.data.begin() + (r * places + (places > 1 ? n : 0)) * width;
    part.insert(part.end(), at, at + width);
  }
  return part;
}

class ActDefinition : public testing::TestWithParam<Shape> {};

TEST_P(ActDefinition, EveryIntermediateAgrees) {
  const Shape& shape = GetParam();
  const auto checkpoint = ActCheckpoint(ConfigOf(shape));
  const mjp::PolicyConfig& config = checkpoint->config;
  const Observations observations(config, shape.environments);
  mjp::PolicyTrace trace;
  const mjp::PolicyOutput output =
      Decide(checkpoint, observations.input, shape.environments, 2, &trace);
  ActReference reference(mjp::ActOf(*checkpoint), checkpoint->stats);
  for (int n = 0; n < shape.environments; ++n) {
    const mjp::PolicyInput alone = observations.Alone(n);
    const std::map<std::string, Matrix> expected =
        reference.Run(alone.frames, alone.state, alone.environment);
    for (const auto& [name, values] : expected) {
      ASSERT_TRUE(trace.tensors.contains(name)) << name;
      const double limit = name == "actions_norm" ? kActionLimit : kInnerLimit;
      EXPECT_TRUE(CheckClose(PartOf(trace.tensors.at(name), name, n), values, limit))
          << name << ", environment " << n;
    }
    EXPECT_EQ(expected.size(), trace.tensors.size());
    const Matrix& actions = expected.at("actions_norm");
    for (size_t i = 0; i < actions.size(); ++i) {
      const size_t c = i % config.action_dim;
      const double raw =
          actions[i] * checkpoint->stats.action.second[c] + checkpoint->stats.action.first[c];
      ASSERT_NEAR(output.actions[n * actions.size() + i], raw, kActionLimit) << i;
    }
  }
}

// what the tokens of the pictures are called by, and that every action's weights are a mean
TEST(ActAttention, IsAMeanOfAllTokens) {
  const auto checkpoint = ActCheckpoint(SmallActConfig());
  const auto& config = mjp::ActOf(*checkpoint).config;
  constexpr int kCount = 3;
  const Observations observations(config, kCount);
  mjp::PolicyTrace trace;
  const std::vector<float> traced =
      Decide(checkpoint, observations.input, kCount, 1, &trace).actions;
  EXPECT_EQ(traced, Decide(checkpoint, observations.input, kCount, 1).actions);
  const mjp::Tensor& weights = trace.tensors.at(mjp::LastAttention(*checkpoint));
  ASSERT_EQ(weights.shape, (std::vector<int64_t>{config.horizon, kCount, config.Tokens()}));
  const size_t tokens = config.Tokens();
  for (size_t row = 0; row < weights.data.size(); row += tokens) {
    double sum = 0;
    for (size_t i = 0; i < tokens; ++i) {
      EXPECT_GT(weights.data[row + i], 0);
      sum += weights.data[row + i];
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  const std::vector<mjp::PictureTokens> pictures = mjp::AttendedPictures(*checkpoint);
  ASSERT_EQ(pictures.size(), config.cameras.size());
  EXPECT_EQ(pictures[0].first, 3);  // after latent, state and environment
  EXPECT_EQ(pictures[1].first, pictures[0].first + pictures[0].height * pictures[0].width);
  EXPECT_EQ(pictures[1].first + pictures[1].height * pictures[1].width, config.Tokens());
  EXPECT_TRUE(mjp::AttendedPictures(*mjp::NamedNetwork("compact")).empty());
}

constexpr auto kRelu = mjp::TokenActivation::kRelu, kGelu = mjp::TokenActivation::kGeluErf;

INSTANTIATE_TEST_SUITE_P(
    Shapes, ActDefinition,
    testing::Values(Shape{"default_form", false, kRelu, true, false, 1, 18, 1},
                    Shape{"two_cameras_all_vectors", false, kGelu, true, true, 2},
                    Shape{"norms_before", true, kRelu, true, true, 1},
                    Shape{"no_camera_batch", true, kGelu, true, true, 0, 18, 3, 3},
                    Shape{"resnet34", false, kRelu, true, false, 1, 34, 2}),
    [](const auto& info) { return std::string(info.param.name); });

// what a thread or a neighbour in the batch computes changes no bit
TEST(ActPolicy, DependsOnNeitherThreadsNorBatch) {
  const auto checkpoint = ActCheckpoint(SmallActConfig());
  constexpr int kCount = 5;
  const Observations observations(checkpoint->config, kCount);
  const std::vector<float> all = Decide(checkpoint, observations.input, kCount, 1).actions;
  EXPECT_EQ(Decide(checkpoint, observations.input, 64, 3).actions, all);
  const auto size = static_cast<ptrdiff_t>(all.size() / kCount);
  for (int n = 0; n < kCount; ++n) {
    const std::vector<float> expected(all.begin() + n * size, all.begin() + (n + 1) * size);
    EXPECT_EQ(Decide(checkpoint, observations.Alone(n), 1, 2).actions, expected) << n;
  }
}

TEST(ActPolicy, RefusesWhatOnlyASamplerHas) {
  const auto checkpoint = ActCheckpoint(SmallActConfig());
  const auto refusal = [&](const mjp::SamplerOptions& sampler) -> std::string {
    mjp::PolicyOptions options;
    options.backend = mjp::Backend::kCpu;
    options.sampler = sampler;
    try {
      mjp::Policy::Create(checkpoint, options);
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kUsage);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.kind = mjp::SamplerKind::kDdim}).find("sampler: "), 0u);
  EXPECT_EQ(refusal({.steps = 10}).find("steps: "), 0u);
  EXPECT_EQ(refusal({.parallel_window = 16}).find("parallel: "), 0u);
  EXPECT_EQ(refusal({.hold_noise = 2}).find("hold noise: "), 0u);
  EXPECT_EQ(refusal({.temperature = 0.5f}).find("temperature: "), 0u);
}

TEST(ActPolicy, OptionsAsResolvedAreAccepted) {
  const auto checkpoint = ActCheckpoint(SmallActConfig());
  const auto first = mjp::Policy::Create(checkpoint, {});
  EXPECT_EQ(mjp::Policy::Create(checkpoint, first->options())->options(), first->options());
}

TEST(ActPolicy, RefusesNoiseAndWhatIsNotFinite) {
  const auto checkpoint = ActCheckpoint(SmallActConfig());
  Observations observations(checkpoint->config, 1);
  const std::vector<float> x(checkpoint->config.horizon * checkpoint->config.action_dim);
  mjp::PolicyInput noisy = observations.input;
  noisy.x_start = x;
  EXPECT_THROW(Decide(checkpoint, noisy, 1, 1), mjp::Error);
  observations.state[1] = NAN;
  EXPECT_THROW(Decide(checkpoint, observations.input, 1, 1), mjp::Error);
}

}  // namespace
}  // namespace mjp_test

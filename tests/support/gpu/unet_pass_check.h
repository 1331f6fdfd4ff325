#ifndef TESTS_SUPPORT_UNET_PASS_CHECK_H_
#define TESTS_SUPPORT_UNET_PASS_CHECK_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/reference/unet_pass.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/policy.h"
#include "policy/unet/unet_model.h"
#include "tests/support/check_close.h"

// Passes of small U-Nets, as a backend makes them, against their definition in double precision.

namespace mjp_test {

struct UnetShape {
  const char* name;
  std::vector<int> down_dims;
  int horizon, kernel, groups, batch;
  int action_dim = 2;
};

inline const std::vector<UnetShape>& UnetShapes() {
  static const std::vector<UnetShape> shapes = {
      {"shipped", {32, 64, 128}, 16, 5, 8, 1}, {"shipped_batch", {32, 64, 128}, 16, 5, 8, 5},
      {"one_level", {64}, 16, 5, 8, 3},        {"horizon_8", {32, 64, 128}, 8, 5, 8, 2},
      {"horizon_64", {32, 64}, 64, 5, 8, 1},   {"kernel_3_four_groups", {24, 40}, 12, 3, 4, 2, 3},
      {"wide", {64, 128, 256}, 16, 5, 8, 2},
  };
  return shapes;
}

inline std::shared_ptr<const mjp::Checkpoint> UnetCheckpoint(const UnetShape& shape) {
  mjp::UnetPolicyConfig config;
  config.type = "diffusion";
  config.state_dim = 3, config.environment_dim = 5;
  config.action_dim = shape.action_dim;
  config.horizon = shape.horizon;
  config.n_action_steps = std::min(4, shape.horizon - config.n_obs_steps + 1);
  config.unet.down_dims = shape.down_dims;
  config.unet.kernel_size = shape.kernel;
  config.unet.groups = shape.groups;
  config.unet.step_embed_dim = 16;
  const auto range = [](int size, float low, float high) {
    return mjp::FeatureStats{mjp::Normalization::kMinMax, std::vector<float>(size, low),
                             std::vector<float>(size, high)};
  };
  mjp::NormalizerStats stats;
  stats.state = range(3, 0, 512), stats.environment = range(5, 0, 512);
  stats.action = range(shape.action_dim, -1, 1);
  return mjp::RandomCheckpoint(config, stats, 11);
}

// Each step's network output against the definition of the pass, on the x that the step before
// left. `limit`: docs/NUMERICS.md, network output.
inline void CheckUnetPasses(const UnetShape& shape, mjp::Backend backend, mjp::Precision precision,
                            double limit) {
  constexpr int kSteps = 4;
  const auto checkpoint = UnetCheckpoint(shape);
  const mjp::UnetPolicyConfig& config = mjp::UnetOf(*checkpoint).config;
  mjp::PolicyOptions options;
  options.backend = backend, options.precision = precision, options.batch = shape.batch;
  options.sampler = {mjp::SamplerKind::kDdim, kSteps, 0};
  std::vector<float> state, environment;
  std::vector<mjp::NoiseKey> keys;
  for (int i = 0; i < shape.batch * config.n_obs_steps; ++i) {
    const auto at = static_cast<float>(20 + i * 37 % 400);
    for (int k = 0; k < config.state_dim; ++k) state.push_back(at + 9.0f * k);
    for (int k = 0; k < config.environment_dim; ++k) environment.push_back(at + 5.0f * k);
    if (i % config.n_obs_steps == 0) keys.push_back({1000u + i, 2});
  }
  mjp::PolicyInput input;
  input.count = shape.batch;
  input.state = state, input.environment = environment, input.keys = keys;
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  mjp::Policy::Create(checkpoint, options)->Infer(input, output);
  const int row = config.horizon * config.action_dim, width = config.CondDim();
  ASSERT_EQ(trace.timesteps.size(), size_t{kSteps});
  ASSERT_EQ(trace.global_cond.size(), static_cast<size_t>(shape.batch) * width);
  ASSERT_EQ(trace.x_steps.size(), static_cast<size_t>(kSteps) * shape.batch * row);
  ASSERT_EQ(trace.eps_steps.size(), trace.x_steps.size());
  for (int step = 1; step < kSteps; ++step) {
    for (int env = 0; env < shape.batch; ++env) {
      const float* before = &trace.x_steps[((step - 1) * shape.batch + env) * row];
      const float* actual = &trace.eps_steps[(step * shape.batch + env) * row];
      mjp::reference::Signal x = {config.action_dim, config.horizon, {}};
      for (int c = 0; c < config.action_dim; ++c)
        for (int l = 0; l < config.horizon; ++l)
          x.values.push_back(before[l * config.action_dim + c]);
      const std::vector<double> cond(trace.global_cond.begin() + env * width,
                                     trace.global_cond.begin() + (env + 1) * width);
      const mjp::reference::Signal expected =
          mjp::reference::UnetPass(mjp::UnetOf(*checkpoint).unet, x, trace.timesteps[step], cond);
      std::vector<double> by_position;
      for (int l = 0; l < config.horizon; ++l)
        for (int c = 0; c < config.action_dim; ++c)
          by_position.push_back(expected.values[c * config.horizon + l]);
      EXPECT_TRUE(CheckClose(std::vector<float>(actual, actual + row), by_position, limit))
          << "step " << step << ", environment " << env;
    }
  }
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_UNET_PASS_CHECK_H_

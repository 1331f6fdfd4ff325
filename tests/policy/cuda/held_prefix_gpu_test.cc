// Chunks whose beginning is held, and students of one pass, on the GPU against the CPU, in each
// form of the U-Net.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/policy.h"
#include "policy/unet/unet_model.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Precision;
using mjp::SamplerKind;
using Shared = std::shared_ptr<const mjp::Checkpoint>;

constexpr int kBatch = 3;
constexpr int kHeld[kBatch] = {5, 0, 2};

// The shipped policy, as one that sees a prefix with the noise of each step or without.
Shared Shipped(bool noisy = true) {
  auto policy = std::make_shared<mjp::Checkpoint>(
      *mjp::LoadCheckpoint(std::string(MJPOLICY_SOURCE_DIR) + "/assets/pusht_image"));
  policy->config.trained_prefix = !noisy;
  return policy;
}

// `policy` as a student: the same weights tell actions.
Shared AsStudent(const Shared& policy) {
  auto student = std::make_shared<mjp::Checkpoint>(*policy);
  const auto network = std::make_shared<mjp::UnetModel>(mjp::UnetOf(*policy));
  network->config.scheduler.kind = SamplerKind::kOneStep;
  network->config.scheduler.prediction = mjp::PredictionType::kSample;
  network->config.scheduler.inference_steps = 1;
  student->network = network;
  return student;
}

// Normalised chunks of kBatch observations.
std::vector<float> Chunks(const Shared& checkpoint, mjp::Backend backend, Precision precision,
                          const mjp::SamplerOptions& sampler) {
  mjp::PolicyOptions options;
  options.self_check = false;  // the test is the check
  options.backend = backend;
  options.precision = precision;
  options.sampler = sampler;
  options.batch = kBatch;
  options.scene_drawer = &mjp::FlatSceneDrawer();
  const auto policy = mjp::Policy::Create(checkpoint, options);
  const mjp::PolicyConfig& config = policy->config();
  std::vector<mjp::FlatScene> scenes;
  std::vector<float> state, prefix;
  std::vector<mjp::NoiseKey> keys;
  for (int n = 0; n < kBatch; ++n) {
    for (int t = 0; t < 2; ++t) {
      scenes.push_back({100.0f + 30 * n + 4 * t, 150, 250, 300, 0.5f});
      state.insert(state.end(), {100.0f + 30 * n + 4 * t, 150});
    }
    keys.push_back({7u + n, 0});
    for (int i = 0; i < config.horizon * config.action_dim; ++i)
      prefix.push_back(static_cast<float>(120 + 20 * n + 3 * i));
  }
  mjp::PolicyInput input;
  input.count = kBatch;
  input.scenes = mjp::SceneBytes(scenes);
  input.state = state, input.keys = keys;
  if (sampler.prefix) input.prefix = prefix, input.prefix_steps = kHeld;
  std::vector<float> start(prefix.size());
  if (sampler.warm_start > 0) {
    for (size_t i = 0; i < start.size(); ++i) start[i] = std::sin(static_cast<float>(3 * i));
    input.x_start = start;
  }
  mjp::PolicyOutput output;
  policy->Infer(input, output);
  mjp::Normalize(checkpoint->stats.action, config.action_dim, output.actions);
  return output.actions;
}

void ExpectAlike(const Shared& checkpoint, Precision precision, const mjp::SamplerOptions& sampler,
                 double tolerance) {
  const std::vector<float> there = Chunks(checkpoint, mjp::Backend::kCuda, precision, sampler);
  const std::vector<float> here = Chunks(checkpoint, mjp::Backend::kCpu, Precision::kFp32, sampler);
  ASSERT_EQ(there.size(), here.size());
  double largest = 0;
  for (size_t i = 0; i < here.size(); ++i) {
    const double difference = std::abs(double{there[i]} - here[i]);
    ASSERT_TRUE(std::isfinite(difference)) << i;
    largest = std::max(largest, difference);
  }
  EXPECT_LT(largest, tolerance);
}

// The shipped policy runs in the row kernel; fp32 has a launch for each layer; "notebook" runs in
// the megakernel. Tolerances are those of the self-check.
class HeldPrefixGpu : public testing::TestWithParam<SamplerKind> {
 protected:
  static mjp::SamplerOptions Sampler(bool prefix) {
    mjp::SamplerOptions sampler = {GetParam(), 4, 0};
    sampler.prefix = prefix;
    return sampler;
  }
};

TEST_P(HeldPrefixGpu, RowKernel) {
  DEVICE_OR_SKIP();
  ExpectAlike(Shipped(), Precision::kFp16, Sampler(true), 1e-2);
}
TEST_P(HeldPrefixGpu, LaunchPerLayer) {
  DEVICE_OR_SKIP();
  ExpectAlike(Shipped(), Precision::kFp32, Sampler(true), 6e-5);
}
TEST_P(HeldPrefixGpu, Megakernel) {
  DEVICE_OR_SKIP();
  ExpectAlike(mjp::NamedNetwork("notebook"), Precision::kFp16, Sampler(true), 1e-2);
}

TEST_P(HeldPrefixGpu, WhatIsHeldIsInTheChunkAndChangesTheRest) {
  DEVICE_OR_SKIP();
  const Shared shipped = Shipped();
  const auto held = Chunks(shipped, mjp::Backend::kCuda, Precision::kFp16, Sampler(true));
  const auto plain = Chunks(shipped, mjp::Backend::kCuda, Precision::kFp16, Sampler(false));
  const size_t chunk = held.size() / kBatch;
  for (size_t i = 0; i < 2 * kHeld[0]; ++i)
    EXPECT_NEAR(held[i], (120 + 3.0 * static_cast<double>(i)) / 256 - 1, 1e-5);
  EXPECT_NE(std::vector<float>(held.begin() + 2 * kHeld[0], held.begin() + chunk),
            std::vector<float>(plain.begin() + 2 * kHeld[0], plain.begin() + chunk));
  // none is held in the second one
  EXPECT_TRUE(std::equal(held.begin() + chunk, held.begin() + 2 * chunk, plain.begin() + chunk));
}

TEST_P(HeldPrefixGpu, WithoutNoiseWhereThePolicyWasTrainedSo) {
  DEVICE_OR_SKIP();
  const Shared trained = Shipped(false);
  ExpectAlike(trained, Precision::kFp16, Sampler(true), 1e-2);
  ExpectAlike(trained, Precision::kFp32, Sampler(true), 6e-5);
  EXPECT_NE(Chunks(trained, mjp::Backend::kCuda, Precision::kFp32, Sampler(true)),
            Chunks(Shipped(), mjp::Backend::kCuda, Precision::kFp32, Sampler(true)));
}

// All chunks but the second, which has no plan, begin at one after two of four steps. In each form
// of the U-Net.
TEST_P(HeldPrefixGpu, AWarmStartIsTheCpus) {
  DEVICE_OR_SKIP();
  mjp::SamplerOptions warm = Sampler(true);
  warm.warm_start = 2;
  for (const Shared& checkpoint : {Shipped(true), Shipped(false)}) {
    ExpectAlike(checkpoint, Precision::kFp16, warm, 1e-2);
    ExpectAlike(checkpoint, Precision::kFp32, warm, 6e-5);
    const auto begun = Chunks(checkpoint, mjp::Backend::kCuda, Precision::kFp32, warm);
    const auto cold = Chunks(checkpoint, mjp::Backend::kCuda, Precision::kFp32, Sampler(true));
    const size_t chunk = begun.size() / kBatch;
    EXPECT_FALSE(std::equal(begun.begin() + 2 * chunk, begun.end(), cold.begin() + 2 * chunk));
  }
  ExpectAlike(mjp::NamedNetwork("notebook"), Precision::kFp16, warm, 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Chains, HeldPrefixGpu,
                         testing::Values(SamplerKind::kDdpm, SamplerKind::kDdim));

TEST(OneStepGpu, EveryFormIsTheCpus) {
  DEVICE_OR_SKIP();
  ExpectAlike(AsStudent(Shipped()), Precision::kFp16, {}, 1e-2);
  ExpectAlike(AsStudent(Shipped()), Precision::kFp32, {}, 6e-5);
  ExpectAlike(AsStudent(mjp::NamedNetwork("notebook")), Precision::kFp16, {}, 1e-2);
}

}  // namespace

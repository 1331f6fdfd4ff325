// A host's own floating-point environment: other rounding, subnormal numbers flushed, traps. What a
// policy computes does not depend on it, and the host has it back.

#include <gtest/gtest.h>

#include <cfenv>
#include <functional>
#include <memory>
#include <string>
#include <vector>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/network_model.h"
#include "policy/policy.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/small_checkpoint.h"

namespace mjp_test {
namespace {

struct Environment {
  const char* name;
  std::function<void()> set;
};

const Environment kEnvironments[] = {
    {"rounding up", [] { std::fesetround(FE_UPWARD); }},
    {"rounding to zero", [] { std::fesetround(FE_TOWARDZERO); }},
#ifdef __SSE__
    {"no subnormal numbers", [] { _mm_setcsr(_mm_getcsr() | 0x8040); }},
#endif
#ifdef __GLIBC__
    {"traps", [] { feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW); }},
#endif
};

class FloatEnvironmentTest : public ::testing::Test {
 protected:
  void TearDown() override { std::fesetenv(FE_DFL_ENV); }

  // Loads a policy and runs it once.
  static std::vector<float> Actions(
      const std::function<std::shared_ptr<const mjp::Checkpoint>()>& load) {
    const auto checkpoint = load();
    mjp::PolicyOptions options;
    options.backend = mjp::Backend::kCpu;
    options.threads = 2;
    if (checkpoint->network->text_tokens() > 0) options.instruction = "ab c";
    const auto policy = mjp::Policy::Create(checkpoint, options);
    const mjp::PolicyConfig& config = policy->config();
    const auto steps = static_cast<size_t>(config.n_obs_steps);
    std::vector<uint8_t> frames;
    for (const mjp::CameraFeature& camera : config.cameras)
      frames.resize(frames.size() + 3 * steps * camera.height * camera.width);
    for (size_t i = 0; i < frames.size(); ++i) frames[i] = static_cast<uint8_t>(i * 37 % 251);
    const std::vector<float> state(steps * config.state_dim, 0.3f);
    const std::vector<float> environment(steps * config.environment_dim, 0.7f);
    const std::vector<mjp::NoiseKey> keys = {{5, 2}};
    mjp::PolicyInput input;
    input.count = 1;
    input.frames = frames;
    input.state = state;
    input.environment = environment;
    input.keys = keys;
    mjp::PolicyOutput output;
    policy->Infer(input, output);
    return output.actions;
  }
  static void ExpectTheSameEverywhere(
      const std::function<std::shared_ptr<const mjp::Checkpoint>()>& load) {
    const std::vector<float> expected = Actions(load);
    for (const Environment& environment : kEnvironments) {
      SCOPED_TRACE(environment.name);
      environment.set();
      const int rounding = std::fegetround();
      const std::vector<float> actions = Actions(load);
      EXPECT_EQ(std::fegetround(), rounding) << "the host's is gone";
      std::fesetenv(FE_DFL_ENV);
      EXPECT_EQ(actions, expected);
    }
  }

  const TempDir folder_;
};

TEST_F(FloatEnvironmentTest, DoesNotChangeAUnetsActions) {
  WriteSmallCheckpoint(folder_ / "policy");
  ExpectTheSameEverywhere([&] { return mjp::LoadCheckpoint(folder_ / "policy"); });
}

TEST_F(FloatEnvironmentTest, DoesNotChangeAnActsActions) {
  mjp::ActPolicyConfig config = SmallActConfig();
  config.cameras.clear();  // its ResNet takes long
  mjp::WriteCheckpoint(folder_ / "policy", *ActCheckpoint(config), mjp::WeightFormat::kF32);
  ExpectTheSameEverywhere([&] { return mjp::LoadCheckpoint(folder_ / "policy"); });
}

TEST_F(FloatEnvironmentTest, DoesNotChangeADitsActions) {
  const std::string policy = WriteSmallDit(folder_, "policy", SmallDitConfig(true));
  ExpectTheSameEverywhere([&] { return mjp::LoadCheckpoint(policy); });
}

}  // namespace
}  // namespace mjp_test

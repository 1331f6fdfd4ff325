#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "policy/act/temporal_ensemble.h"
#include "tests/policy/act/act_golden_checks.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/completed_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

TEST(ActGoldens, CompactWithTwoCameras) {
  SHARED_OR_SKIP(directory, "goldens_act_dit/p_act_compact");
  const TempDir dir;
  CompleteBackbone(directory, dir / "policy");
  const auto checkpoint = mjp::LoadCheckpoint(dir / "policy");
  ASSERT_EQ(checkpoint->config.cameras.size(), 2u);
  EXPECT_EQ(checkpoint->config.cameras[0].name, "observation.images.wrist") << "as written";
  CheckCase("act_compact", checkpoint);
}

TEST(ActGoldens, NormsBeforeWithEnvironmentState) {
  SHARED_OR_SKIP(directory, "goldens_act_dit/p_act_prenorm_env");
  CheckCase("act_prenorm_env", mjp::LoadCheckpoint(directory));
}

TEST(ActGoldens, ThirtyStepsOfTemporalEnsembling) {
  SHARED_OR_SKIP(json, "goldens_act_dit/case_act_ensemble.json");
  const auto checkpoint = StoredActCheckpoint(json);
  const mjp::PolicyConfig& config = checkpoint->config;
  const auto ensemble = mjp::EnsembleOf(config);
  ASSERT_TRUE(ensemble);
  const mjp::SafetensorsFile file = ReadStored("act_ensemble");
  const Stored stored(file, config);
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  const auto policy = mjp::Policy::Create(checkpoint, options);
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  std::vector<float> before, actions, chunks;
  constexpr int kSteps = 30;
  for (int step = 0; step < kSteps; ++step) {
    mjp::PolicyInput input;
    input.count = 1;
    input.state = std::span(stored.state).subspan(step * config.state_dim, config.state_dim);
    input.environment = std::span(stored.environment)
                            .subspan(step * config.environment_dim, config.environment_dim);
    policy->Infer(input, output);
    const std::vector<float>& chunk = trace.tensors.at("actions_norm").data;
    chunks.insert(chunks.end(), chunk.begin(), chunk.end());
    ensemble->Fold(before, step, output.actions);
    before = output.actions;
    actions.insert(actions.end(), before.begin(), before.begin() + config.action_dim);
  }
  EXPECT_TRUE(CheckClose(chunks, file.Floats("out/chunks_norm.f64").data, kActionLimit));
  EXPECT_TRUE(CheckClose(actions, file.Floats("out/actions.f64").data, kActionLimit));
}

}  // namespace
}  // namespace mjp_test

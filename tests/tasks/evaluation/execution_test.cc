// Whether a checkpoint that says how it is executed is executed so.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "policy/checkpoint/checkpoint.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/pusht/evaluation/pusht_task.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

// An episode of a policy with random weights.
std::string Play(EvaluationOptions options) {
  const std::atomic<bool> never = false;
  EpisodeResult episode =
      Evaluate(
          PushtTask(), options,
          mjp::Policy::Create(mjp::LoadCheckpoint(options.checkpoint), options.policy),
          ShardIndices(options), [](const EpisodeResult&) {}, never)
          .episodes.at(0);
  episode.seconds = 0;
  episode.smoothness.reset();  // the plugin does not measure it
  return ToJsonLine(episode);
}

// On a GPU kernels and windows are chosen by it, and run.json says it.
TEST(ExecutionTest, ThePolicyInThePluginIsOfOneRobot) {
  EvaluationOptions options;
  options.policy.batch = 64;
  options.episodes = 5;
  EXPECT_EQ(ResolveBatch(options), 5);
  options.episodes = 500;
  EXPECT_EQ(ResolveBatch(options), 64);
  options.through = Through::kPlugin;
  EXPECT_EQ(ResolveBatch(options), 1);
}

TEST(ExecutionTest, IsWhatTheCheckpointSays) {
  const mjp_test::TempDir folder;
  const std::string plain = folder / "plain", said = folder / "said";
  mjp_test::WriteSmallCheckpoint(plain);
  std::filesystem::copy(plain, said);
  std::string config = mjp_test::ReadText(plain + "/config.json");
  config.insert(1, R"("replan_every": 2, "replan_beyond": 480, "temperature": 0.5,)");
  std::ofstream(said + "/config.json") << config;

  EvaluationOptions options;
  options.checkpoint = plain;
  options.episodes = options.policy.batch = 1;
  options.max_steps = 12;
  options.policy.backend = mjp::Backend::kCpu;
  options.policy.sampler = {mjp::SamplerKind::kDdim, 4, 0};
  options.policy.sampler.hold_noise = 1;
  options.policy.scene_drawer = &mjp::FlatSceneDrawer();
  EvaluationOptions given = options, as_said = options;
  given.action_steps = 2;
  given.replan_beyond = 480;
  given.policy.sampler.temperature = 0.5f;
  as_said.checkpoint = said;
  EXPECT_EQ(Play(as_said), Play(given));
  EXPECT_NE(Play(as_said), Play(options));
  as_said.through = given.through = Through::kPlugin;
  EXPECT_EQ(Play(as_said), Play(given));

  // options come first; action steps alone leave the rule out
  as_said.action_steps = options.action_steps = 8;
  as_said.policy.sampler.temperature = 1.0f;
  options.through = Through::kPlugin;
  EXPECT_EQ(Play(as_said), Play(options));
}

}  // namespace
}  // namespace mjp::app

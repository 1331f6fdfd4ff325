#include "tasks/pusht/coverage_score.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "plugin/score.h"
#include "tasks/pusht/coverage.h"
#include "tasks/pusht/observation.h"
#include "tasks/pusht/physics/scene.h"

namespace mjp::app {
namespace {

TEST(CoverageScore, IsThatOfPushTAlone) {
  const ModelPtr model = LoadModel(ModelPath("pusht.xml"));
  const auto scores = mjp::ScoresOf(model.get());
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_EQ(scores[0].first, "coverage");
  const DataPtr data = MakeData(model.get());
  const State state = {100, 100, 250, 270, 0.9};
  Scene(model.get()).ToQpos(state, data->qpos);
  const double coverage = scores[0].second.read(model.get(), data.get());
  EXPECT_NEAR(coverage, Coverage(state), 1e-9);
  EXPECT_GT(coverage, 0.3);
  EXPECT_LT(coverage, 1);

  model->opt.timestep = 0.02;  // not the benchmark
  EXPECT_TRUE(mjp::ScoresOf(model.get()).empty());
}

// An evaluation scores by the benchmark's goal, so the model must have that one.
TEST(BenchmarkGoal, IsAskedOfTheModelsThatAreScoredByIt) {
  const auto refusal = [](const mjModel* model, RendererKind renderer) {
    mjp::PolicyConfig config;
    config.action_dim = 2;
    if (renderer == RendererKind::kRaster) config.cameras = {{"observation.image", 3, 96, 96}};
    const Scene scene(model);
    try {
      const Observer observer(renderer, Conditions(), config, scene);
    } catch (const mjp::Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  for (const char* file : {"pusht.xml", "pusht_physics.xml"}) {
    const ModelPtr model = LoadModel(ModelPath(file));
    EXPECT_EQ(refusal(model.get(), RendererKind::kMujoco), "accepted");
    mjtNum* goal = model->body_pos + 3 * mj_name2id(model.get(), mjOBJ_BODY, "goal");
    goal[0] += 0.5;
    EXPECT_NE(refusal(model.get(), RendererKind::kMujoco).find("elsewhere"), std::string::npos);
  }
  const ModelPtr shown = LoadModel(ModelPath("pusht.xml"));
  EXPECT_EQ(refusal(shown.get(), RendererKind::kRaster), "accepted");
  const ModelPtr bare = LoadModel(ModelPath("pusht_physics.xml"));
  EXPECT_NE(refusal(bare.get(), RendererKind::kRaster).find("missing"), std::string::npos);
}

}  // namespace
}  // namespace mjp::app

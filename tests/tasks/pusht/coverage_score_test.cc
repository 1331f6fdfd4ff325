#include "tasks/pusht/coverage_score.h"

#include <gtest/gtest.h>

#include "plugin/score.h"
#include "tasks/pusht/coverage.h"
#include "tasks/pusht/physics/scene.h"

namespace mjp::app {
namespace {

TEST(CoverageScore, IsThatOfPushTAlone) {
  RegisterCoverageScore();
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

}  // namespace
}  // namespace mjp::app

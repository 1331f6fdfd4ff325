#include "tasks/pusht/physics/batch_physics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "base/error.h"
#include "tasks/physics/random_state.h"
#include "tasks/pusht/physics/reset.h"

namespace mjp::app {
namespace {

using ::testing::HasSubstr;

constexpr int kCount = 12, kSteps = 60;

ModelPtr Model(const char* file) {
  return LoadModel(std::string(MJPOLICY_SOURCE_DIR) + "/models/" + file);
}

bool SameBits(const State& a, const State& b) { return std::memcmp(&a, &b, sizeof(State)) == 0; }

// targets of simulation i at step t: a random walk over the board, with contact
Target TargetOf(int i, int t) {
  RandomState random(1000 * i + t / 10);
  return {60 + 392 * random.RandomSample(), 60 + 392 * random.RandomSample()};
}

// what plain MuJoCo gives: one simulation at a time
std::vector<State> PlainLoop(const mjModel* model) {
  const Scene scene(model);
  const DataPtr data = MakeData(model);
  std::vector<State> states;
  for (int i = 0; i < kCount; ++i) {
    scene.SetStart(BenchmarkStart(i), data.get());
    for (int t = 0; t < kSteps; ++t) {
      scene.SetTarget(TargetOf(i, t).x, TargetOf(i, t).y, data.get());
      for (int k = 0; k < kSubsteps; ++k) mj_step(model, data.get());
    }
    states.push_back(scene.Read(data.get()));
  }
  return states;
}

class BatchPhysicsTest : public ::testing::TestWithParam<int> {};

TEST_P(BatchPhysicsTest, GivesTheBitsOfAPlainLoop) {
  const std::vector<State> expected = PlainLoop(Model("pusht.xml").get());
  // a batch of the model without its drawn parts, in which other episodes ran before
  BatchPhysics physics(Model("pusht_physics.xml").get(), kCount, GetParam());
  std::vector<int> ids(kCount);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<Target> targets(kCount, {256, 256});
  for (int i = 0; i < kCount; ++i) physics.Reset(i, BenchmarkStart(500 + i));
  for (int t = 0; t < 20; ++t) physics.Step(ids, targets);

  for (int i = 0; i < kCount; ++i) physics.Reset(i, BenchmarkStart(i));
  for (int t = 0; t < kSteps; ++t) {
    for (int i = 0; i < kCount; ++i) targets[i] = TargetOf(i, t);
    physics.Step(ids, targets);
  }
  for (int i = 0; i < kCount; ++i) {
    EXPECT_TRUE(SameBits(physics.Read(i), expected[i])) << "simulation " << i;
    EXPECT_EQ(physics.Failure(i), "");
  }
}

TEST_P(BatchPhysicsTest, SubsetsInAnyOrderGiveTheSameBits) {
  const ModelPtr model = Model("pusht_physics.xml");
  const std::vector<State> expected = PlainLoop(model.get());
  BatchPhysics physics(model.get(), kCount, GetParam());
  for (int i = 0; i < kCount; ++i) physics.Reset(i, BenchmarkStart(i));
  // even simulations first, to their end; then the odd ones, backwards
  for (const bool odd : {false, true}) {
    std::vector<int> ids;
    for (int i = odd ? kCount - 1 : 0; i >= 0 && i < kCount; i += odd ? -2 : 2) ids.push_back(i);
    for (int t = 0; t < kSteps; ++t) {
      std::vector<Target> targets;
      for (const int i : ids) targets.push_back(TargetOf(i, t));
      physics.Step(ids, targets);
    }
  }
  for (int i = 0; i < kCount; ++i) EXPECT_TRUE(SameBits(physics.Read(i), expected[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(Threads, BatchPhysicsTest, ::testing::Values(1, 2, 5));

TEST(BatchPhysicsFailureTest, ADivergedSimulationIsReportedAlone) {
  mju_user_warning = [](const char*) {};  // expected here; no MUJOCO_LOG.TXT
  const ModelPtr model = Model("pusht_physics.xml");
  BatchPhysics physics(model.get(), 3, 2);
  for (int i = 0; i < 3; ++i) physics.Reset(i, BenchmarkStart(i));
  const std::vector<int> ids = {0, 1, 2};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  physics.Step(ids, std::vector<Target>{{256, 256}, {1e30, 256}, {256, nan}});
  EXPECT_EQ(physics.Failure(0), "");
  EXPECT_THAT(physics.Failure(1), HasSubstr("diverged"));
  EXPECT_THAT(physics.Failure(2), HasSubstr("target is not finite"));

  // it stays so, without harm to others, until its next start
  physics.Step(ids, std::vector<Target>(3, {256, 256}));
  EXPECT_EQ(physics.Failure(0), "");
  EXPECT_NE(physics.Failure(1), "");
  for (int i = 0; i < 3; ++i) physics.Reset(i, BenchmarkStart(1));
  physics.Step(ids, std::vector<Target>(3, {256, 256}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(physics.Failure(i), "");
    EXPECT_TRUE(SameBits(physics.Read(i), physics.Read(0)));
  }
}

TEST(BatchPhysicsFailureTest, AnotherModelIsRefused) {
  mjSpec* spec = mj_makeSpec();
  const ModelPtr empty(mj_compile(spec, nullptr));
  mj_deleteSpec(spec);
  ASSERT_NE(empty, nullptr);
  EXPECT_THROW(BatchPhysics(empty.get(), 2, 1), mjp::Error);
}

}  // namespace
}  // namespace mjp::app

#include "tasks/pusht/planner/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "tasks/physics/random_stream.h"
#include "tasks/pusht/coverage.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/planner/planned_episodes.h"

namespace mjp::app {
namespace {

constexpr int kExecuted = 8;  // control steps between plans

// Control steps until coverage > 0.95 in MuJoCo, replanning from the last plan; 0 if never.
int StepsToSolve(uint32_t seed, const Scene& scene, mjData* data, Planner* planner) {
  scene.SetStart(BenchmarkStart(seed), data);
  MovingState now = {scene.Read(data)};
  Plan plan;
  for (int step = 0; step < kControlSteps; ++step) {
    if (step % kExecuted == 0) {
      const Plan rest = Advance(plan, kExecuted);
      plan = planner->Solve(now, step == 0 ? nullptr : &rest, {seed, static_cast<uint64_t>(step)});
    }
    const Point target = plan.Target(step % kExecuted);
    scene.SetTarget(target.x, target.y, data);
    for (int i = 0; i < kSubsteps; ++i) mj_step(scene.model(), data);
    const State state = scene.Read(data);
    if (IsSuccess(Coverage(state))) return step + 1;
    now = WithVelocity(now.pose, state, target.x, target.y);
  }
  return 0;
}

TEST(PlannerTest, SolvesTwentyStartsInMujoco) {
  const ModelPtr model = LoadModel(std::string(MJPOLICY_SOURCE_DIR) + "/models/pusht_physics.xml");
  const Scene scene(model.get());
  const DataPtr data = MakeData(model.get());
  Planner planner{PlannerOptions{}};
  int sum = 0;
  for (uint32_t seed = 100000; seed < 100020; ++seed) {
    const int steps = StepsToSolve(seed, scene, data.get(), &planner);
    EXPECT_GT(steps, 0) << "seed " << seed;
    sum += steps;
  }
  EXPECT_LT(sum, 20 * 90);  // 63 on average over 300 starts
}

bool SamePlan(const Plan& a, const Plan& b) {
  return std::memcmp(&a.start, &b.start, sizeof(a.start)) == 0 &&
         std::memcmp(a.knots.data(), b.knots.data(), sizeof(a.knots)) == 0 && a.cost == b.cost;
}

std::vector<PlanRequest> Requests() {
  std::vector<PlanRequest> requests(9);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].state.pose = BenchmarkStart(static_cast<uint32_t>(i));
    requests[i].key = {i, 3};
    if (i % 2 == 1) {
      requests[i].has_warm = true;
      requests[i].warm = FollowTargets(std::vector<Point>{{100, 100}, {110, 100}});
    }
  }
  return requests;
}

TEST(PlannerTest, ThreadsDoNotChangeThePlans) {
  const std::vector<PlanRequest> requests = Requests();
  PlannerOptions options;
  options.samples = 64;
  options.rounds = 3;
  const std::vector<Plan> one = MakePlans(requests, options, 1);
  const std::vector<Plan> four = MakePlans(requests, options, 4);
  ASSERT_EQ(one.size(), requests.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(SamePlan(one[i], four[i])) << i;
    EXPECT_TRUE(std::isfinite(one[i].cost));
  }
}

TEST(PlannerTest, ThePlanIsAFunctionOfTheKey) {
  PlannerOptions options;
  options.samples = 64;
  options.rounds = 2;
  Planner planner(options);
  const MovingState state = {BenchmarkStart(5)};
  const Plan first = planner.Solve(state, nullptr, {1, 2});
  planner.Solve(state, nullptr, {1, 3});
  EXPECT_TRUE(SamePlan(first, planner.Solve(state, nullptr, {1, 2})));
  EXPECT_FALSE(SamePlan(first, planner.Solve(state, nullptr, {2, 2})));
}

TEST(PlannerTest, NeverWorseThanTheWarmStart) {
  PlannerOptions options;
  Planner planner(options);
  const MovingState state = {BenchmarkStart(11)};
  const Plan first = planner.Solve(state, nullptr, {0, 0});
  for (uint64_t decision = 1; decision < 5; ++decision) {
    EXPECT_LE(planner.Solve(state, &first, {0, decision}).cost, first.cost);
  }
}

// What only the walls cost where the agent stays at (100, 100).
float WallCost(double block_x) {
  LaneWorlds worlds;
  FillLanes({{100, 100, block_x, 256, 1.5707963}}, &worlds);
  LanePaths paths;
  paths.start_x = paths.start_y = 100;
  for (int knot = 0; knot < kKnots; ++knot) {
    std::fill_n(paths.x[knot], kLanes, 100.0f);
    std::fill_n(paths.y[knot], kLanes, 100.0f);
  }
  PlanCost cost;
  cost.distance = cost.root_distance = cost.reach = 0;
  alignas(64) float costs[kLanes];
  LaneKernelsFor(mjp::ActiveIsa()).evaluate(worlds, paths, cost, costs);
  return costs[kLanes - 1];
}

TEST(PlannerTest, ABlockDeepInAWallCosts) {
  EXPECT_EQ(WallCost(450), 0);
  EXPECT_EQ(WallCost(505.5), 0);  // the bar's edge is 1.5 pixels deep
  EXPECT_GT(WallCost(520), 10);
}

TEST(PlanTest, TargetsRunThroughTheKnotsAndAdvance) {
  Plan plan;
  plan.start = {0, 100};
  for (int i = 0; i < kKnots; ++i) plan.knots[i] = {10.0f * static_cast<float>(i + 1), 100};
  EXPECT_FLOAT_EQ(plan.Target(0).x, 2.5f);
  EXPECT_FLOAT_EQ(plan.Target(3).x, 10);
  EXPECT_FLOAT_EQ(plan.Target(kHorizon - 1).x, 10.0f * kKnots);
  EXPECT_FLOAT_EQ(plan.Target(kHorizon + 5).x, 10.0f * kKnots);
  const Plan rest = Advance(plan, 6);
  for (int step = 0; step + 6 < kHorizon - kKnotSpacing; ++step) {
    EXPECT_NEAR(rest.Target(step).x, plan.Target(step + 6).x, 1e-4);
  }
}

TEST(PlannerTest, FollowsTargetsAsTheSimulationDoes) {
  const ModelPtr model = LoadModel(std::string(MJPOLICY_SOURCE_DIR) + "/models/pusht_physics.xml");
  const Scene scene(model.get());
  const DataPtr data = MakeData(model.get());
  scene.SetStart({150, 256, 256, 256, 0.5}, data.get());
  const MovingState start = {scene.Read(data.get())};
  const std::vector<Point> targets = {{180, 260}, {210, 265}, {240, 270}, {270, 275}};
  for (const Point& target : targets) {
    scene.SetTarget(target.x, target.y, data.get());
    for (int i = 0; i < kSubsteps; ++i) mj_step(scene.model(), data.get());
  }
  const State simulated = scene.Read(data.get()), followed = Follow(start, targets).pose;
  EXPECT_GT(simulated.block_x, start.pose.block_x + 5);  // it was pushed
  EXPECT_NEAR(followed.agent_x, simulated.agent_x, 1);
  EXPECT_NEAR(followed.agent_y, simulated.agent_y, 1);
  EXPECT_NEAR(followed.block_x, simulated.block_x, 3);
  EXPECT_NEAR(followed.block_y, simulated.block_y, 3);
  EXPECT_NEAR(followed.block_angle, simulated.block_angle, 0.05);
}

TEST(PlannerTest, NothingFollowedIsTheStateToTheBit) {
  const MovingState state = {BenchmarkStart(5), 0.1, 0.2};
  const MovingState after = Follow(state, {});
  EXPECT_EQ(std::memcmp(&after, &state, sizeof(state)), 0);
}

TEST(PlannerTest, RefusesOptionsOutOfRange) {
  PlannerOptions options;
  options.samples = 100;
  EXPECT_THROW(Planner{options}, mjp::Error);
  options.samples = 256;
  options.rounds = 0;
  EXPECT_THROW(Planner{options}, mjp::Error);
}

TEST(PlannedEpisodesTest, AreThoseOfTheirSeedsAndSufferFromPushes) {
  PlannedEpisodesOptions options;
  options.episodes = 4;
  options.planner.samples = 64;
  options.planner.rounds = 2;
  options.threads = 1;
  const std::atomic<bool> never = false, now = true;
  const Figures alone = PlayPlanned(options, never);
  EXPECT_EQ(alone.episodes, 4);
  EXPECT_EQ(alone.invalid, 0);
  EXPECT_GT(alone.mean_score, 0.9);
  options.threads = 3;
  EXPECT_EQ(PlayPlanned(options, never).mean_sum_reward, alone.mean_sum_reward);
  options.pusht.push = 60;
  EXPECT_LT(PlayPlanned(options, never).mean_score, alone.mean_score);
  EXPECT_EQ(PlayPlanned(options, now).episodes, 0);
}

// Block poses almost at the goal, the agent beside the bar's end.
std::vector<State> AlmostThere(int count) {
  RandomStream random(7, 0, 0);
  std::vector<State> states;
  while (static_cast<int>(states.size()) < count) {
    State s;
    s.block_x = kGoalX + 3 * random.Normal();
    s.block_y = kGoalY + 3 * random.Normal();
    s.block_angle = kGoalAngle + 0.03 * random.Normal();
    s.agent_x = s.block_x + 80 * std::cos(s.block_angle);
    s.agent_y = s.block_y + 80 * std::sin(s.block_angle);
    if (Coverage(s) > 0.92 && !IsSuccess(Coverage(s))) states.push_back(s);
  }
  return states;
}

// A plan that begins by waiting costs little, so the planner keeps it.
TEST(PlannerTest, KeepsTheWaitingOfThePlanThatItStartsFrom) {
  PlannerOptions options;
  options.samples = 512;
  options.rounds = 5;
  options.cost.speed_limit = 56;
  Planner planner(options);
  constexpr int kStates = 40;
  constexpr double kWaits = 24;  // pixels in kKnotSpacing steps
  int fresh = 0, improved = 0;
  uint64_t decision = 0;
  for (const State& s : AlmostThere(kStates)) {
    const auto waits = [&](const Plan& plan) {
      return std::hypot(plan.knots[0].x - s.agent_x, plan.knots[0].y - s.agent_y) < kWaits;
    };
    const Plan plan = planner.Solve({s}, nullptr, {1, decision});
    Plan late = plan;
    std::copy_backward(plan.knots.begin(), plan.knots.end() - 1, late.knots.end());
    late.knots[0] = {static_cast<float>(s.agent_x), static_cast<float>(s.agent_y)};
    fresh += waits(plan);
    improved += waits(planner.Solve({s}, &late, {2, decision++}));
  }
  EXPECT_LE(fresh, kStates / 10);
  EXPECT_GE(improved, kStates / 2);
}

}  // namespace
}  // namespace mjp::app

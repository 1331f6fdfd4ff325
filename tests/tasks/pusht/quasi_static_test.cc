#include "tasks/pusht/planner/quasi_static.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/npy.h"
#include "tasks/physics/random_stream.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/planner/planner.h"
#include "tests/support/shared_data.h"
#include "tests/tasks/pusht/fidelity.h"

namespace mjp::app {
namespace {

using mjp_test::EpisodeError;
using mjp_test::Fidelity;

void HoldTarget(const LaneKernels& kernels, double x, double y, ContactRule rule,
                LaneWorlds* worlds) {
  LaneTargets targets;
  std::fill_n(targets.x, kLanes, static_cast<float>(x));
  std::fill_n(targets.y, kLanes, static_cast<float>(y));
  kernels.step(worlds, targets, rule);
}

TEST(QuasiStaticTest, ReplaysHumanEpisodesAsTheOriginalEngine) {
  SHARED_OR_SKIP(actions_file, "pusht/human_action.npy");
  SHARED_OR_SKIP(ends_file, "pusht/human_episode_ends.npy");
  SHARED_OR_SKIP(golden_file, "pusht/golden_replay.npy");
  const std::vector<double> actions = ReadNpy(actions_file).ToDoubles();
  const std::vector<int64_t> ends = ReadNpy(ends_file).ToIntegers("ends");
  const std::vector<double> golden = ReadNpy(golden_file).ToDoubles();
  const LaneKernels& kernels = LaneKernelsFor(mjp::ActiveIsa());
  std::vector<EpisodeError> errors;
  size_t row = 0;
  int64_t step = 0;
  for (int episode = 0; episode < 150; ++episode) {
    std::vector<State> expected, states;
    for (int64_t i = step; i <= ends[episode]; ++i, ++row) {
      const double* g = &golden[5 * row];
      expected.push_back({g[0], g[1], g[2], g[3], g[4]});
    }
    LaneWorlds worlds;
    FillLanes({expected.front()}, &worlds);
    states.push_back(ReadLane(worlds, 0).pose);
    for (; step < ends[episode]; ++step) {
      HoldTarget(kernels, actions[2 * step], actions[2 * step + 1], ContactRule::kChipmunk,
                 &worlds);
      states.push_back(ReadLane(worlds, kLanes - 1).pose);
    }
    errors.push_back(mjp_test::Compare(states, expected));
  }
  const Fidelity f = mjp_test::Summarise(errors, 0.85);
  EXPECT_LE(f.median_worst, 0.005);  // measured: 0.0003
  EXPECT_LE(f.median_final, 0.002);  // measured: 0.0001
  EXPECT_LE(f.worst_agent, 0.002);
  EXPECT_LE(f.other_side, 1);
}

// A start and a walk of targets about the block; a different one for each seed.
struct Walk {
  State start;
  std::vector<Point> targets;
};

Walk RandomWalk(uint32_t seed, int steps) {
  RandomStream random(seed);
  Walk walk;
  walk.start = BenchmarkStart(2000000 + seed);
  Point at = {static_cast<float>(walk.start.agent_x), static_cast<float>(walk.start.agent_y)};
  Point goal = at;
  for (int i = 0; i < steps; ++i) {
    if (i % 20 == 0) goal = {random.Uniform(100, 412), random.Uniform(100, 412)};
    const float dx = goal.x - at.x, dy = goal.y - at.y;
    const float part = std::min(1.0f, 6 / std::max(std::hypot(dx, dy), 1e-3f));
    at = {at.x + part * dx, at.y + part * dy};
    walk.targets.push_back(at);
  }
  return walk;
}

TEST(QuasiStaticTest, FollowsMujocoOneControlStepAtATime) {
  const ModelPtr model = LoadModel(std::string(MJPOLICY_SOURCE_DIR) + "/models/pusht_physics.xml");
  const Scene scene(model.get());
  const DataPtr data = MakeData(model.get());
  const LaneKernels& kernels = LaneKernelsFor(mjp::ActiveIsa());
  std::vector<double> errors;
  double farthest = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Walk walk = RandomWalk(seed, 100);
    scene.SetStart(walk.start, data.get());
    MovingState now = {scene.Read(data.get())};
    for (const Point& target : walk.targets) {
      LaneWorlds worlds;
      FillLanes(now, &worlds);
      HoldTarget(kernels, target.x, target.y, ContactRule::kMujoco, &worlds);
      const State guess = ReadLane(worlds, 0).pose;
      scene.SetTarget(target.x, target.y, data.get());
      for (int i = 0; i < kSubsteps; ++i) mj_step(model.get(), data.get());
      const State state = scene.Read(data.get());
      errors.push_back(std::hypot(guess.block_x - state.block_x, guess.block_y - state.block_y));
      farthest = std::max(
          farthest, std::hypot(state.block_x - now.pose.block_x, state.block_y - now.pose.block_y));
      EXPECT_NEAR(guess.agent_x, state.agent_x, 2e-3);
      EXPECT_NEAR(guess.agent_y, state.agent_y, 2e-3);
      now = WithVelocity(now.pose, state, target.x, target.y);
    }
  }
  EXPECT_GT(farthest, 3);  // the walks do push the block
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() * 99 / 100], 0.05);
  EXPECT_LT(errors.back(), 2);  // false for not-a-number too
}

TEST(QuasiStaticTest, VelocityIsThatOfTheSimulation) {
  const LaneKernels& kernels = LaneKernelsFor(mjp::ActiveIsa());
  LaneWorlds worlds;
  FillLanes({{100, 120, 300, 300, 0}, 37, -81}, &worlds);
  const MovingState before = ReadLane(worlds, 0);
  HoldTarget(kernels, 160, 90, ContactRule::kMujoco, &worlds);
  const MovingState after = ReadLane(worlds, 0);
  const MovingState derived = WithVelocity(before.pose, after.pose, 160, 90);
  EXPECT_NEAR(derived.agent_vx, after.agent_vx, 1e-2);
  EXPECT_NEAR(derived.agent_vy, after.agent_vy, 1e-2);
}

using Fields = std::array<std::array<float, kLanes>, sizeof(LaneWorlds) / sizeof(float[kLanes])>;

// Sixteen different worlds: some near walls, some with the agent inside the block.
LaneWorlds MixedWorlds() {
  RandomStream random(7);
  Fields fields;
  for (int lane = 0; lane < kLanes; ++lane) {
    MovingState state;
    state.pose.block_x = random.Uniform(60, 450);
    state.pose.block_y = random.Uniform(60, 450);
    state.pose.block_angle = random.Uniform(-3, 3);
    state.pose.agent_x = state.pose.block_x + random.Uniform(-90, 90);
    state.pose.agent_y = state.pose.block_y + random.Uniform(-90, 90);
    LaneWorlds one;
    FillLanes(state, &one);
    const Fields from = std::bit_cast<Fields>(one);
    for (size_t field = 0; field < from.size(); ++field) fields[field][lane] = from[field][lane];
  }
  return std::bit_cast<LaneWorlds>(fields);
}

TEST(QuasiStaticTest, AllInstructionSetsGiveTheSameBits) {
  LanePaths paths;
  RandomStream random(8);
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int knot = 0; knot < kKnots; ++knot) {
      paths.x[knot][lane] = random.Uniform(5, 507);
      paths.y[knot][lane] = random.Uniform(5, 507);
    }
  }
  paths.start_x = paths.start_y = 250;
  alignas(64) float reference[kLanes];
  LaneKernelsFor(mjp::Isa::kBaseline).evaluate(MixedWorlds(), paths, PlanCost{}, reference);
  for (float cost : reference) ASSERT_TRUE(std::isfinite(cost));
  for (mjp::Isa isa : {mjp::Isa::kAvx2, mjp::Isa::kAvx512}) {
    if (isa > mjp::ActiveIsa()) continue;
    alignas(64) float cost[kLanes];
    LaneKernelsFor(isa).evaluate(MixedWorlds(), paths, PlanCost{}, cost);
    EXPECT_EQ(std::memcmp(cost, reference, sizeof(cost)), 0) << mjp::IsaName(isa);
  }
}

TEST(QuasiStaticTest, NeighboursDoNotChangeALane) {
  const LaneKernels& kernels = LaneKernelsFor(mjp::ActiveIsa());
  LaneTargets targets;
  RandomStream random(9);
  for (int lane = 0; lane < kLanes; ++lane) {
    targets.x[lane] = random.Uniform(100, 412);
    targets.y[lane] = random.Uniform(100, 412);
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    Fields fields = std::bit_cast<Fields>(MixedWorlds());
    for (auto& field : fields) field.fill(field[lane]);
    LaneWorlds alone = std::bit_cast<LaneWorlds>(fields);
    for (int step = 0; step < 20; ++step) {
      HoldTarget(kernels, targets.x[lane], targets.y[lane], ContactRule::kMujoco, &alone);
    }
    LaneWorlds mixed = MixedWorlds();
    for (int step = 0; step < 20; ++step) kernels.step(&mixed, targets, ContactRule::kMujoco);
    EXPECT_EQ(mixed.center_x[lane], alone.center_x[lane]);
    EXPECT_EQ(mixed.center_y[lane], alone.center_y[lane]);
    EXPECT_EQ(mixed.sine[lane], alone.sine[lane]);
  }
}

}  // namespace
}  // namespace mjp::app

#include "tests/tasks/pusht/fidelity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <numbers>
#include <string>

#include "tasks/physics/random_state.h"
#include "tasks/pusht/physics/chipmunk_oracle.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/planner/planner.h"
#include "tasks/pusht/replay.h"
#include "tests/support/shared_data.h"

// How faithful the MuJoCo scene is to the benchmark's original physics: the same targets in both
// engines. Limits and their reasons: docs/NUMERICS.md.

namespace mjp::app {
namespace {

using mjp_test::Fidelity;

constexpr double kMedianWorst = 0.55, kMedianFinal = 0.15;  // pixels

ModelPtr Model() { return LoadModel(std::string(MJPOLICY_SOURCE_DIR) + "/models/pusht.xml"); }

// Chooses the next target from the state.
using Driver = std::function<Target(const State&, int step)>;

// Drives `episodes` episodes in the original engine; driver_of(e) makes episode e's driver.
struct Reference {
  Recording recording;
  std::vector<State> states;  // laid out as Replay::states
};

void Drive(const State& start, int steps, const Driver& driver, Reference* reference) {
  ChipmunkOracle oracle;
  oracle.Reset(start);
  reference->recording.starts.push_back(start);
  reference->states.push_back(oracle.Read());
  for (int t = 0; t < steps && !IsSuccess(Coverage(reference->states.back())); ++t) {
    const Target target = driver(reference->states.back(), t);
    oracle.Step(target.x, target.y);
    reference->recording.actions.push_back(target);
    reference->states.push_back(oracle.Read());
  }
  reference->recording.ends.push_back(static_cast<int64_t>(reference->recording.actions.size()));
}

Fidelity Print(const std::vector<mjp_test::EpisodeError>& errors) {
  const Fidelity f = mjp_test::Summarise(errors, 0.85);
  std::printf(
      "block error, median of %zu episodes: worst %.3f px, final %.3f px; agent %.1e px; "
      "%d on the other side of 0.85\n",
      errors.size(), f.median_worst, f.median_final, f.worst_agent, f.other_side);
  return f;
}

Fidelity MujocoAgainst(const Reference& reference, const mjModel* model) {
  const Recording& recording = reference.recording;
  const Replay replay = ReplayInMujoco(model, recording, 2);
  std::vector<mjp_test::EpisodeError> errors;
  size_t row = 0;
  for (size_t e = 0; e < recording.ends.size(); ++e) {
    EXPECT_EQ(replay.failures[e], "");
    const size_t end = recording.ends[e] + e + 1;
    errors.push_back(
        mjp_test::Compare({&replay.states[row], end - row}, {&reference.states[row], end - row}));
    row = end;
  }
  return Print(errors);
}

// Walks to random points about the block, 6 pixels a step, away from the walls.
Driver RandomWalk(uint32_t seed, const State& start) {
  return [random = RandomState(seed), target = Target{start.agent_x, start.agent_y},
          goal = Target{}](const State& s, int step) mutable {
    if (step % 20 == 0) {
      const double radius = 120 * std::sqrt(random.RandomSample());
      const double direction = 2 * std::numbers::pi * random.RandomSample();
      const double center_x = s.block_x - kCenterOfGravityY * std::sin(s.block_angle);
      const double center_y = s.block_y + kCenterOfGravityY * std::cos(s.block_angle);
      goal = {std::clamp(center_x + radius * std::cos(direction), 100.0, 412.0),
              std::clamp(center_y + radius * std::sin(direction), 100.0, 412.0)};
    }
    const double dx = goal.x - target.x, dy = goal.y - target.y;
    const double part = std::min(1.0, 6 / std::max(std::hypot(dx, dy), 1e-9));
    target = {target.x + part * dx, target.y + part * dy};
    return target;
  };
}

Reference RandomReference(int episodes) {
  Reference reference;
  for (int e = 0; e < episodes; ++e) {
    const State start = BenchmarkStart(1000000 + e);
    Drive(start, 100, RandomWalk(e, start), &reference);
  }
  return reference;
}

TEST(FidelityTest, RandomActions) {
  const Fidelity f = MujocoAgainst(RandomReference(200), Model().get());
  EXPECT_LE(f.median_worst, kMedianWorst);
  EXPECT_LE(f.median_final, kMedianFinal);
}

// Solves the task with the planner, a new plan every kPlanned control steps.
constexpr int kPlanned = 8;

MovingState Moving(const State& before, const State& now, const Target& target, int step) {
  return step == 0 ? MovingState{now} : WithVelocity(before, now, target.x, target.y);
}

Driver Planned(uint64_t seed) {
  return [seed, planner = std::make_shared<Planner>(PlannerOptions{}), plan = Plan{},
          before = State{}, target = Target{}](const State& s, int step) mutable {
    if (step % kPlanned == 0) {
      const Plan rest = step == 0 ? Plan{} : Advance(plan, kPlanned);
      plan = planner->Solve(Moving(before, s, target, step), step == 0 ? nullptr : &rest,
                            {seed, static_cast<uint64_t>(step)});
    }
    const Point next = plan.Target(step % kPlanned);
    before = s;
    target = {next.x, next.y};
    return target;
  };
}

Reference PlannedReference(int episodes) {
  Reference reference;
  for (int e = 0; e < episodes; ++e) {
    const uint32_t seed = 2000000 + e;
    Drive(BenchmarkStart(seed), 150, Planned(seed), &reference);
  }
  return reference;
}

// The planner pushes twice as fast as people do, at corners and without pause, so that a whole
// episode without feedback multiplies small errors more than a human one: limits of their own.
TEST(FidelityTest, PlannerActionsOverWholeEpisodes) {
  const Fidelity f = MujocoAgainst(PlannedReference(100), Model().get());
  EXPECT_LE(f.median_worst, 1.3);
  EXPECT_LE(f.median_final, 0.6);
}

// Between two plans, as the planner is used, the engines must agree as on human actions.
TEST(FidelityTest, PlannerActionsFromPlanToPlan) {
  const Reference reference = PlannedReference(100);
  const ModelPtr model = Model();
  const Scene scene(model.get());
  const DataPtr data = MakeData(model.get());
  std::vector<mjp_test::EpisodeError> errors;
  int64_t begin = 0;
  for (size_t e = 0; e < reference.recording.ends.size(); ++e) {
    const int64_t end = reference.recording.ends[e];
    const State* expected = &reference.states[begin + e];
    const Target* targets = &reference.recording.actions[begin];
    for (int64_t t = 0; t + kPlanned <= end - begin; t += kPlanned) {
      const MovingState start = t == 0 ? MovingState{expected[0]}
                                       : Moving(expected[t - 1], expected[t], targets[t - 1], t);
      mj_resetData(model.get(), data.get());
      scene.ToQpos(start.pose, data->qpos);
      data->qvel[0] = start.agent_vx / kPixelsPerUnit;
      data->qvel[1] = start.agent_vy / kPixelsPerUnit;
      std::vector<State> got = {start.pose};
      for (int k = 0; k < kPlanned; ++k) {
        scene.SetTarget(targets[t + k].x, targets[t + k].y, data.get());
        for (int i = 0; i < kSubsteps; ++i) mj_step(model.get(), data.get());
        got.push_back(scene.Read(data.get()));
      }
      // a plan that leaves the block alone says nothing
      if (expected[t].block_angle == expected[t + kPlanned].block_angle) continue;
      errors.push_back(mjp_test::Compare(got, {expected + t, kPlanned + 1}));
    }
    begin = end;
  }
  const Fidelity f = Print(errors);
  EXPECT_LE(f.median_worst, kMedianWorst);
  EXPECT_LE(f.median_final, kMedianFinal);
}

TEST(FidelityTest, AllHumanEpisodes) {
  SHARED_OR_SKIP(actions_file, "pusht/human_action.npy");
  SHARED_OR_SKIP(ends_file, "pusht/human_episode_ends.npy");
  const std::vector<double> actions = ReadNpy(actions_file).ToDoubles();
  const std::vector<int64_t> ends = ReadNpy(ends_file).ToIntegers("ends");
  Reference reference;
  int64_t begin = 0;
  for (size_t e = 0; e < ends.size(); ++e) {
    Drive(
        BenchmarkStart(e), static_cast<int>(ends[e] - begin),
        [&](const State&, int step) {
          const int64_t i = 2 * (begin + step);
          return Target{actions[i], actions[i + 1]};
        },
        &reference);
    begin = ends[e];
  }
  const Fidelity f = MujocoAgainst(reference, Model().get());
  EXPECT_LE(f.median_worst, kMedianWorst);
  EXPECT_LE(f.median_final, kMedianFinal);
  EXPECT_LE(f.other_side, 1);
}

}  // namespace
}  // namespace mjp::app

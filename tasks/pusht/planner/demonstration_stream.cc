#include "tasks/pusht/planner/demonstration_stream.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tasks/physics/random_stream.h"
#include "tasks/pusht/coverage.h"
#include "tasks/pusht/physics/reset.h"

namespace mjp::app {
namespace {

constexpr uint32_t kFirstSeed = 1000000;  // benchmark starts below are left to evaluations
constexpr float kNearGoalSigma = 15, kNearGoalAngle = 0.25f;          // pixels, radians
constexpr float kJoltSigma = 50, kOffsetSigma = 10, kPushSigma = 15;  // pixels
constexpr int kMaxJoltSteps = 4;
constexpr float kWallFaceNear = 7, kWallFaceFar = 504;  // pixels

Point Noise(float sigma, RandomStream* random) {
  const float x = sigma * random->Normal(), y = sigma * random->Normal();
  return {x, y};
}

bool BetweenWalls(const State& state) {
  constexpr double kCorners[6][2] = {{-60, 0}, {60, 0}, {60, 30}, {15, 120}, {-15, 120}, {-60, 30}};
  const double c = std::cos(state.block_angle), s = std::sin(state.block_angle);
  return std::ranges::all_of(kCorners, [&](const double* corner) {
    const double x = state.block_x + c * corner[0] - s * corner[1];
    const double y = state.block_y + s * corner[0] + c * corner[1];
    return std::min(x, y) > kWallFaceNear && std::max(x, y) < kWallFaceFar;
  });
}

State StartAnywhere(RandomStream* random) {
  State state;
  do {
    state.block_x = random->Uniform(20, 492);
    state.block_y = random->Uniform(20, 492);
    state.block_angle = random->Uniform(-1, 1) * std::numbers::pi;
  } while (!BetweenWalls(state));
  return state;
}

State DrawStart(const StreamOptions& options, RandomStream* random) {
  const double kind = random->Uniform();
  State state;
  if (kind < options.near_goal_share) {
    const Point offset = Noise(kNearGoalSigma, random);
    state.block_x = kGoalX + offset.x;
    state.block_y = kGoalY + offset.y;
    state.block_angle = kGoalAngle + kNearGoalAngle * random->Normal();
  } else if (kind < options.near_goal_share + options.anywhere_share) {
    state = StartAnywhere(random);
  } else {
    return BenchmarkStart(kFirstSeed + static_cast<uint32_t>(random->Bits() % (~0u - kFirstSeed)));
  }
  state.agent_x = random->Uniform(25, 487);
  state.agent_y = random->Uniform(25, 487);
  return state;
}

void CopyState(const State& state, float* row) {
  row[0] = static_cast<float>(state.agent_x);
  row[1] = static_cast<float>(state.agent_y);
  row[2] = static_cast<float>(state.block_x);
  row[3] = static_cast<float>(state.block_y);
  row[4] = static_cast<float>(state.block_angle);
}

// An episode under way: the simulation and what the planner and the rows need to know of it.
struct Episode {
  State previous, state;
  Point target;  // held last
  int steps = 0;
  int solved_at = 0;  // control step at whose end coverage exceeded 0.95; 0: not yet
  double coverage = 0;
};

void StartEpisode(const State& start, const Scene& scene, mjData* data, Episode* episode) {
  scene.SetStart(start, data);
  *episode = {};
  episode->state = episode->previous = scene.Read(data);
  episode->target = {static_cast<float>(episode->state.agent_x),
                     static_cast<float>(episode->state.agent_y)};
  episode->coverage = Coverage(episode->state);
}

void StepEpisode(const Point& target, const Scene& scene, mjData* data, Episode* episode) {
  episode->previous = episode->state;
  episode->target = {std::clamp(target.x, 0.0f, 512.0f), std::clamp(target.y, 0.0f, 512.0f)};
  scene.SetTarget(episode->target.x, episode->target.y, data);
  for (int i = 0; i < kSubsteps; ++i) mj_step(scene.model(), data);
  episode->state = scene.Read(data);
  episode->coverage = Coverage(episode->state);
  ++episode->steps;
  if (episode->solved_at == 0 && IsSuccess(episode->coverage)) episode->solved_at = episode->steps;
}

bool IsOver(const StreamOptions& options, const Episode& episode) {
  return episode.coverage > options.goal_coverage || episode.steps >= kControlSteps;
}

// Executes part of a plan, possibly disturbed; returns how many steps of the plan have passed.
int Execute(const StreamOptions& options, const Plan& plan, bool disturbed, const Scene& scene,
            mjData* data, RandomStream* random, Episode* episode) {
  int passed = 0;
  Point offset;
  if (disturbed && random->Uniform() < options.push_share) {
    const Point push = Noise(kPushSigma, random);
    scene.PushBlock(push.x, push.y, data->qpos);
  }
  if (disturbed && random->Uniform() < options.jolt_share) {
    const Point at = {static_cast<float>(episode->state.agent_x),
                      static_cast<float>(episode->state.agent_y)};
    const Point noise = Noise(kJoltSigma, random);
    const int steps = 1 + random->Below(kMaxJoltSteps);
    for (; passed < steps && !IsOver(options, *episode); ++passed) {
      StepEpisode({at.x + noise.x, at.y + noise.y}, scene, data, episode);
    }
    return passed;
  }
  if (disturbed && random->Uniform() < options.offset_share) offset = Noise(kOffsetSigma, random);
  const int steps =
      options.min_execute + random->Below(options.max_execute - options.min_execute + 1);
  for (; passed < steps && !IsOver(options, *episode); ++passed) {
    const Point target = plan.Target(passed);
    StepEpisode({target.x + offset.x, target.y + offset.y}, scene, data, episode);
  }
  return passed;
}

}  // namespace

DemonstrationRow MakeRow(const State& previous, const State& state, const Point& target,
                         const Plan& plan, std::span<const Point> ahead) {
  DemonstrationRow row;
  CopyState(previous, row.previous);
  CopyState(state, row.state);
  row.previous_target[0] = target.x;
  row.previous_target[1] = target.y;
  const int known = static_cast<int>(ahead.size());
  for (int i = 0; i < kDemonstratedTargets; ++i) {
    const Point taught = i < known ? ahead[i] : plan.Target(i - known);
    row.targets[i][0] = taught.x;
    row.targets[i][1] = taught.y;
  }
  return row;
}

Stream MakeStream(const StreamOptions& options, int64_t index, const Scene& scene, mjData* data) {
  Planner planner(options.planner);
  RandomStream random(options.seed, static_cast<uint64_t>(index), 0);
  const uint64_t plan_seed = random.Bits();
  Stream stream;
  stream.rows.reserve(options.rows);
  const size_t wanted = static_cast<size_t>(options.rows);
  while (stream.rows.size() < wanted) {
    Episode episode;
    StartEpisode(DrawStart(options, &random), scene, data, &episode);
    const bool disturbed = random.Uniform() < options.disturbed_share;
    Plan plan;
    int passed = -1;  // control steps since `plan` was made; -1: none yet
    while (!IsOver(options, episode) && stream.rows.size() < wanted) {
      const MovingState now =
          WithVelocity(episode.previous, episode.state, episode.target.x, episode.target.y);
      const Plan rest = passed < 0 ? Plan{} : Advance(plan, passed);
      plan = planner.Solve(now, passed < 0 ? nullptr : &rest, {plan_seed, stream.rows.size()});
      stream.rows.push_back(MakeRow(episode.previous, episode.state, episode.target, plan));
      passed = Execute(options, plan, disturbed, scene, data, &random, &episode);
    }
    if (!IsOver(options, episode)) break;  // the stream ends within this episode
    ++stream.statistics.episodes;
    stream.statistics.solved += episode.solved_at > 0;
    stream.statistics.steps += episode.solved_at > 0 ? episode.solved_at : kControlSteps;
  }
  stream.statistics.rows = static_cast<int64_t>(stream.rows.size());
  return stream;
}

}  // namespace mjp::app

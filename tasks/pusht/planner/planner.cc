#include "tasks/pusht/planner/planner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/threads.h"
#include "tasks/pusht/planner/planner_proposals.h"

namespace mjp::app {
namespace {

constexpr float kCoast = 0.2f;  // seconds: a target at p + kCoast v keeps the velocity
constexpr float kStructuredShare =
    0.6f;  // of the first round's proposals, if there is a warm start
constexpr float kWideSigma = 80, kNarrowSigma = 12;          // noise on the warm start, pixels
constexpr float kMutationSigma = 16, kMutationDecay = 0.6f;  // pixels; per later round
constexpr int kElites = 32;                                  // halved every round

Point CoastPoint(const MovingState& state) {
  const double x = state.pose.agent_x + kCoast * state.agent_vx;
  const double y = state.pose.agent_y + kCoast * state.agent_vy;
  return {static_cast<float>(std::clamp(x, 0.0, kWorldSize)),
          static_cast<float>(std::clamp(y, 0.0, kWorldSize))};
}

}  // namespace

Point Plan::Target(int step) const {
  const int leg = step / kKnotSpacing;
  if (leg >= kKnots) return knots.back();
  const Point a = leg == 0 ? start : knots[leg - 1], b = knots[leg];
  const float t = static_cast<float>(step % kKnotSpacing + 1) / kKnotSpacing;
  return {a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)};
}

Plan Advance(const Plan& plan, int steps) {
  Plan rest;
  rest.start = steps > 0 ? plan.Target(steps - 1) : plan.start;
  for (int i = 0; i < kKnots; ++i) {
    rest.knots[i] = plan.Target(steps + (i + 1) * kKnotSpacing - 1);
  }
  return rest;
}

Plan FollowTargets(std::span<const Point> targets) {
  Plan plan;
  plan.start = targets.front();
  for (int i = 0; i < kKnots; ++i) {
    const size_t step = static_cast<size_t>((i + 1) * kKnotSpacing - 1);
    plan.knots[i] = targets[std::min(step, targets.size() - 1)];
  }
  return plan;
}

MovingState Follow(const MovingState& state, std::span<const Point> targets) {
  if (targets.empty()) return state;
  LaneWorlds worlds;
  FillLanes(state, &worlds);
  for (const Point& target : targets) {
    LaneTargets lanes;
    std::fill_n(lanes.x, kLanes, target.x);
    std::fill_n(lanes.y, kLanes, target.y);
    LaneKernelsFor(mjp::ActiveIsa()).step(&worlds, lanes, ContactRule::kMujoco);
  }
  return ReadLane(worlds, 0);
}

Planner::Planner(const PlannerOptions& options)
    : options_(options), kernels_(&LaneKernelsFor(mjp::ActiveIsa())) {
  if (options.samples < kElites || options.samples % kLanes != 0) {
    throw mjp::BadInput("the planner cannot use " + std::to_string(options.samples) +
                        " samples: give a multiple of " + std::to_string(kLanes) + ", at least " +
                        std::to_string(kElites));
  }
  if (options.rounds < 1 || options.rounds > 16) {
    throw mjp::BadInput("the planner cannot run " + std::to_string(options.rounds) +
                        " rounds: give 1 to 16");
  }
  proposals_.resize(options.samples);
}

void Planner::Propose(const MovingState& state, const Plan* warm, const PlanKey& key, int round) {
  const Point start = CoastPoint(state);
  const int samples = options_.samples;
  const int structured =
      warm ? static_cast<int>(kStructuredShare * static_cast<float>(samples)) : samples;
  const float sigma = kMutationSigma * std::pow(kMutationDecay, static_cast<float>(round - 1));
  for (int i = 0; i < samples; ++i) {
    RandomStream random(key.seed, key.decision, static_cast<uint64_t>(round) << 32 | i);
    Plan& plan = proposals_[i];
    if (round > 0) {
      const Plan& parent = elites_[random.Below(static_cast<int>(elites_.size()))];
      plan = Mutate(parent, sigma, i % 2 == 0 ? 0 : random.Below(kKnots), &random);
    } else if (i < structured) {
      plan = ProposePush(state.pose, start, options_.cost.speed_limit, &random);
    } else {
      const float noise = i == structured ? 0 : i % 2 == 0 ? kWideSigma : kNarrowSigma;
      plan = Mutate(*warm, noise, 0, &random);
      plan.start = start;
    }
  }
}

void Planner::Evaluate(const MovingState& state) {
  LaneWorlds worlds;
  FillLanes(state, &worlds);
  LanePaths paths;
  const Point start = CoastPoint(state);
  paths.start_x = start.x;
  paths.start_y = start.y;
  for (size_t first = 0; first < proposals_.size(); first += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int knot = 0; knot < kKnots; ++knot) {
        paths.x[knot][lane] = proposals_[first + lane].knots[knot].x;
        paths.y[knot][lane] = proposals_[first + lane].knots[knot].y;
      }
    }
    alignas(64) float cost[kLanes];
    kernels_->evaluate(worlds, paths, options_.cost, cost);
    for (int lane = 0; lane < kLanes; ++lane) proposals_[first + lane].cost = cost[lane];
  }
}

// The cheapest of the proposals and the elites so far; older ones first among equals.
void Planner::KeepElites(int round) {
  const int old_count = static_cast<int>(elites_.size());
  const auto plan_at = [&](int i) -> const Plan& {
    return i < old_count ? elites_[i] : proposals_[i - old_count];
  };
  order_.resize(old_count + proposals_.size());
  for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int>(i);
  const int keep = std::max(1, kElites >> round);
  std::partial_sort(order_.begin(), order_.begin() + keep, order_.end(), [&](int a, int b) {
    const float cost_a = plan_at(a).cost, cost_b = plan_at(b).cost;
    return cost_a < cost_b || (cost_a == cost_b && a < b);
  });
  std::vector<Plan> best(keep);
  for (int i = 0; i < keep; ++i) best[i] = plan_at(order_[i]);
  elites_.swap(best);
}

Plan Planner::Solve(const MovingState& state, const Plan* warm, const PlanKey& key) {
  elites_.clear();
  for (int round = 0; round < options_.rounds; ++round) {
    Propose(state, warm, key, round);
    Evaluate(state);
    KeepElites(round);
  }
  return elites_.front();
}

std::vector<Plan> MakePlans(std::span<const PlanRequest> requests, const PlannerOptions& options,
                            int threads) {
  std::vector<Plan> plans(requests.size());
  std::atomic<size_t> next = 0;
  RunOnThreads(threads, [&](const std::atomic<bool>& failed) {
    Planner planner(options);
    for (size_t i = next++; i < requests.size() && !failed; i = next++) {
      const PlanRequest& request = requests[i];
      plans[i] =
          planner.Solve(request.state, request.has_warm ? &request.warm : nullptr, request.key);
    }
  });
  return plans;
}

}  // namespace mjp::app

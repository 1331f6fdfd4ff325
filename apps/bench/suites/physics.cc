#include <numeric>

#include "apps/bench/harness.h"
#include "tasks/pusht/coverage.h"
#include "tasks/pusht/physics/batch_physics.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/planner/planner.h"

namespace mjp::app {

BenchRows BenchPhysics(const BenchOptions& options) {
  constexpr int kSimulations = 256;
  const ModelPtr model = LoadModel(ModelPath("pusht_physics.xml"));
  const int threads = options.policy.threads;
  BatchPhysics physics(model.get(), kSimulations, threads);
  std::vector<int> ids(kSimulations);
  std::iota(ids.begin(), ids.end(), 0);
  for (const int i : ids) physics.Reset(i, BenchmarkStart(i));
  std::vector<Target> targets(kSimulations);
  int step = 0;
  BenchRows rows;
  rows.push_back(Measure("physics", "control steps, " + std::to_string(threads) + " threads",
                         options.seconds, kSimulations, "control steps", [&] {
                           // the agents sweep across the table and so meet their blocks
                           for (const int i : ids) {
                             const uint32_t at = static_cast<uint32_t>(i) * 37 + step;
                             targets[i] = {60.0 + at * 7 % 400, 60.0 + at * 11 % 400};
                           }
                           physics.Step(ids, targets);
                           ++step;
                         }));
  double sum = 0;
  rows.push_back(Measure("physics", "coverage", options.seconds, kSimulations, "states", [&] {
    for (const int i : ids) sum += Coverage(physics.Read(i));
  }));
  Planner planner(PlannerOptions{});
  uint32_t seed = 0;
  rows.push_back(Measure("physics", "plan (256 samples, 4 rounds), one core", options.seconds, 1,
                         "plans", [&] {
                           MovingState state;
                           state.pose = BenchmarkStart(seed % 100);
                           planner.Solve(state, nullptr, {seed++, 0});
                         }));
  rows[1].note = sum >= 0 ? "" : "negative coverage";
  return rows;
}

}  // namespace mjp::app

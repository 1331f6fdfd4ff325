#include "tasks/pusht/replay.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tasks/pusht/physics/reset.h"

namespace mjp::app {
namespace {

// the elements of a finite array of shape (any, columns)
std::vector<double> Table(const NpyArray& array, int64_t columns, const std::string& name) {
  if (array.shape.size() != 2 || array.shape[1] != columns) {
    throw mjp::BadInput(name + ": an array of shape (rows, " + std::to_string(columns) +
                        ") is needed");
  }
  std::vector<double> values = array.ToDoubles();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw mjp::BadInput(name + ": row " + std::to_string(i / columns) + " is not finite");
    }
  }
  return values;
}

void CheckEnds(const std::vector<int64_t>& ends, size_t episodes, size_t actions) {
  if (ends.size() != episodes) {
    throw mjp::BadInput("ends: " + std::to_string(ends.size()) + " episodes, but " +
                        std::to_string(episodes) + " starts");
  }
  int64_t begin = 0;
  for (const int64_t end : ends) {
    if (end < begin) throw mjp::BadInput("ends: the rows do not ascend");
    begin = end;
  }
  if (static_cast<size_t>(begin) != actions) {
    throw mjp::BadInput("ends: the last is " + std::to_string(begin) + ", but there are " +
                        std::to_string(actions) + " actions");
  }
}

}  // namespace

Recording MakeRecording(const NpyArray& starts, const NpyArray& actions, const NpyArray& ends) {
  Recording recording;
  const std::vector<double> s = Table(starts, 5, "starts");
  for (size_t i = 0; i < s.size(); i += 5) {
    recording.starts.push_back(ApplyLegacyRule({s[i], s[i + 1], s[i + 2], s[i + 3], s[i + 4]}));
  }
  const std::vector<double> a = Table(actions, 2, "actions");
  for (size_t i = 0; i < a.size(); i += 2) recording.actions.push_back({a[i], a[i + 1]});
  recording.ends = ends.ToIntegers("ends");
  CheckEnds(recording.ends, recording.starts.size(), recording.actions.size());
  return recording;
}

Replay ReplayInMujoco(const mjModel* model, const Recording& recording, int threads) {
  const int episodes = static_cast<int>(recording.starts.size());
  Replay replay;
  replay.states.resize(recording.actions.size() + episodes);
  replay.failures.resize(episodes);
  if (episodes == 0) return replay;

  BatchPhysics physics(model, episodes, threads);
  const auto begin = [&](int e) { return e == 0 ? 0 : recording.ends[e - 1]; };
  int64_t longest = 0;
  for (int e = 0; e < episodes; ++e) {
    physics.Reset(e, recording.starts[e]);
    replay.states[begin(e) + e] = physics.Read(e);
    longest = std::max(longest, recording.ends[e] - begin(e));
  }
  std::vector<int> live;
  std::vector<Target> targets;
  for (int64_t t = 0; t < longest; ++t) {
    live.clear();
    targets.clear();
    for (int e = 0; e < episodes; ++e) {
      if (begin(e) + t >= recording.ends[e]) continue;
      live.push_back(e);
      targets.push_back(recording.actions[begin(e) + t]);
    }
    physics.Step(live, targets);
    for (const int e : live) replay.states[begin(e) + e + t + 1] = physics.Read(e);
  }
  for (int e = 0; e < episodes; ++e) replay.failures[e] = physics.Failure(e);
  return replay;
}

NpyArray StatesToNpy(std::span<const State> states) {
  std::vector<double> values;
  for (const State& s : states) {
    values.insert(values.end(), {s.agent_x, s.agent_y, s.block_x, s.block_y, s.block_angle});
  }
  return MakeNpy(values, {static_cast<int64_t>(states.size()), 5});
}

}  // namespace mjp::app

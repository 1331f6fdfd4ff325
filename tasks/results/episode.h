#ifndef TASKS_RESULTS_EPISODE_H_
#define TASKS_RESULTS_EPISODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tasks/results/smoothness.h"

namespace mjp::app {

// How far a task has come, in [0, 1], by one of its measures.
struct TaskMeasure {
  std::string name;
  double max = 0;    // over the control steps
  double final = 0;  // after the last control step
};

// What one episode gave. All but `seconds` is a function of the configuration and the seed.
struct EpisodeResult {
  int index = 0;
  uint32_t seed = 0;
  bool valid = true;      // false: physics diverged or the policy failed; counted as a failure
  std::string reason;     // why it is not valid
  int steps = 0;          // control steps taken
  int success_step = -1;  // first control step (counted from 1) with success, -1: none
  std::vector<TaskMeasure> measures;     // those of the task
  double sum_reward = 0;                 // over the control steps, each in [0, 1]
  double max_reward = 0;                 // the score
  int decisions = 0;                     // action chunks asked of the policy
  uint64_t hash = 0;                     // of every state: equal hash, equal episode
  double seconds = 0;                    // wall time, shared with the episodes beside it
  std::optional<Smoothness> smoothness;  // where the policy ran beside the batch

  bool success() const { return valid && success_step >= 0; }
};

// One line of JSON without the newline; last, in keys of their own, stand the timing and what not
// every way through an evaluation gives.
std::string ToJsonLine(const EpisodeResult& episode);

// Parses a line of ToJsonLine. Throws mjp::Error naming what is wrong with it.
EpisodeResult EpisodeFromJson(const std::string& line);

// Running FNV-1a hash over the bytes of numbers.
class StateHash {
 public:
  void Add(double value);
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 14695981039346656037ull;
};

}  // namespace mjp::app

#endif  // TASKS_RESULTS_EPISODE_H_

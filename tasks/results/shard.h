#ifndef TASKS_RESULTS_SHARD_H_
#define TASKS_RESULTS_SHARD_H_

#include <optional>
#include <string>

namespace mjp::app {

// One of `count` processes that share an evaluation; it takes the episodes i % count == index.
struct Shard {
  int index = 0, count = 1;
};

// Parses "i/N" with 0 <= i < N. Throws Error(kUsage).
Shard ParseShard(const std::string& text);

// "i/N".
std::string ToString(const Shard& shard);

// The shard that a Slurm array (SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _STEP) or an indexed job
// (JOB_COMPLETION_INDEX with JOB_COMPLETION_COUNT) gives this process, if it is in one. Throws
// Error(kUsage) where the variables contradict each other.
std::optional<Shard> ShardFromEnvironment();

}  // namespace mjp::app

#endif  // TASKS_RESULTS_SHARD_H_

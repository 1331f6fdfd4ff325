#ifndef TASKS_EVALUATION_OPTIONS_H_
#define TASKS_EVALUATION_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "policy/policy.h"

namespace mjp::app {

// Where the policy runs: in the engine plugin, one simulation at a time, or beside a batch of
// simulations. Both give the same episodes bit for bit.
enum class Through { kBatch, kPlugin };

// What makes any task harder. All zero: the task itself. A task may have more of its own.
struct Conditions {
  // Control steps between an observation and the first action from it; none: as a task file says,
  // else 0.
  std::optional<int> latency;
  double picture_noise = 0;  // standard deviation of every pixel value, levels
  double brightness = 0;     // largest relative change, drawn per episode
  int picture_shift = 0;     // largest shift in x and y, pixels, drawn per episode
  double action_noise = 0;   // standard deviation of every number of an action, the policy's units

  int Latency() const { return latency.value_or(0); }
};

struct EvaluationOptions {
  std::string checkpoint;  // directory
  int episodes = 50;
  uint32_t seed = 100000;  // episode i starts from seed + i
  int max_steps = 0;       // control steps of an episode; 0: as the task says
  mjp::PolicyOptions policy;
  // Whether a 0 of the sampler's is asked for, and not what a task file may say instead.
  bool hold_noise_given = false, warm_start_given = false;
  Through through = Through::kBatch;
  int action_steps = 0;  // actions executed per decision; 0: as the checkpoint says
  // policy/prefix/event_replanning.h; 0: every new chunk is taken; none: as ResolveRule says
  std::optional<double> replan_beyond;
  int replan_after = 0;  // control steps; 0: as many as the checkpoint executes
  Conditions conditions;
  int videos = 0;  // of the first episodes
  std::string video_folder;
  int shard_index = 0, shard_count = 1;  // this process takes the episodes i % count == index
};

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_OPTIONS_H_

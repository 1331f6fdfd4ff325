#ifndef TASKS_MJCF_RUN_MODEL_H_
#define TASKS_MJCF_RUN_MODEL_H_

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/results/episode.h"

namespace mjp::app {

struct RunModelOptions {
  std::string model;
  double seconds = 0;  // of simulation; 0: as long as the task lasts, or 10
  uint32_t seed = 0;
  std::string video;  // file without its suffix; empty: none
};

// One control that the policy drove.
struct DrivenControl {
  std::string name;
  double low = 0, high = 0;  // of what was wanted, cut to action_clip
  double cut = 0;            // share of the control steps in which its range or action_clip cut it
};

// What came out of a run.
struct RunModelResult {
  std::string name;      // of the model
  bool is_task = false;  // whether `episode` was judged
  EpisodeResult episode;
  double period = 0;     // seconds of a control step
  double seconds = 0;    // wall time
  bool stopped = false;  // before its end
  std::vector<DrivenControl> controls;
  std::string video;  // the file; empty: none
};

// Runs a model that has a policy in it: a task from the start of its seed until it is decided, any
// other from its first keyframe. `on_step` is called after each control step with the seconds
// simulated and those of the whole. Ends early, with what there is so far, once `stop` is true.
// Throws Error where the model does not compile.
RunModelResult RunModel(const RunModelOptions& options,
                        const std::function<void(double seconds, double of)>& on_step,
                        const std::atomic<bool>& stop);

}  // namespace mjp::app

#endif  // TASKS_MJCF_RUN_MODEL_H_

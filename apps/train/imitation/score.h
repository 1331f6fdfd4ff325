#ifndef APPS_TRAIN_IMITATION_SCORE_H_
#define APPS_TRAIN_IMITATION_SCORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "policy/checkpoint/config.h"
#include "policy/pictures/picture_look.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// A scored evaluation while a policy is trained.
struct ScoreOptions {
  std::string task;     // task file; empty: none
  double every = 600;   // seconds of training between two
  int episodes = 20;    // of each, the same starts every time
  int threads = 1;      // of the simulations, and of the policy on the CPU
  bool on_cpu = false;  // where the policy runs; else a GPU where there is one
};

struct Score {
  int episodes = 0;    // that were played
  double success = 0;  // share of them
  double reward = 0;   // mean of their largest rewards
  double seconds = 0;  // wall time
};

// Plays episodes of a task file with checkpoints.
class Scorer {
 public:
  // Throws Error for a file that is no task.
  explicit Scorer(const ScoreOptions& options);

  // Throws Error where a policy of this kind does not fit the task; says on the standard error
  // where it draws otherwise than the pictures of the training, `trained`, were.
  void CheckFits(const PolicyConfig& config, const PictureLooks& trained) const;

  // Scores the checkpoint in a folder, by DDIM of 10 steps where it has a chain. `stop` ends it
  // early, with the episodes that were finished. Throws Error where it does not fit the task.
  Score Play(const std::string& checkpoint, const std::atomic<bool>& stop) const;

 private:
  const ScoreOptions options_;
  std::shared_ptr<TaskFile> file_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_IMITATION_SCORE_H_

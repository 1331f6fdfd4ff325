#ifndef APPS_TRAIN_IMITATION_RUN_H_
#define APPS_TRAIN_IMITATION_RUN_H_

#include <atomic>
#include <optional>
#include <ostream>
#include <string>

#include "apps/train/data/recorded_frames.h"
#include "apps/train/imitation/log.h"
#include "apps/train/imitation/policy.h"
#include "apps/train/imitation/score.h"
#include "apps/train/imitation/step.h"
#include "apps/train/optimisation/device.h"
#include "apps/train/recipe.h"
#include "apps/train/run_length.h"
#include "apps/train/run_state.h"
#include "base/json.h"

namespace mjp::app {

// One run of a training on recorded frames: the files of its folder, and where it stands.
class ImitationRun {
 public:
  // Of `options` those of the network, the optimiser, the step, the device and the run's length
  // count. `data` says what the frames are: a state in options.out does not go on with other data.
  // `grows`: frames will be added. Throws Error for frames or options that cannot be used.
  ImitationRun(RecordedFrames frames, const ImitationShape& shape, const Json& data, bool grows,
               const TrainOptions& options, Ranks& ranks, const std::atomic<bool>& stop);
  ImitationRun(const ImitationRun&) = delete;
  ImitationRun& operator=(const ImitationRun&) = delete;

  // Scores the checkpoint in a task: every score.every seconds of training, and at its end.
  void ScoreBy(ScoreOptions score);
  // Trains up to `until`, a share of the whole training, and saves checkpoint and state; while it
  // trains every options.save_every seconds. Returns whether it has come so far; false: `stop`.
  bool Train(double until, std::ostream& progress);
  // More frames to train on, normalised as those before; actions beyond the range of those are
  // moved to its border where the policy clips its samples.
  void Add(RecordedFrames frames);

  std::string checkpoint() const { return options_.out + "/checkpoint"; }

 private:
  std::string StatePath() const { return options_.out + "/state.safetensors"; }
  void MakeStep();
  double Progress() const;
  void Save() const;
  void Log(std::ostream& progress);
  // Scores the checkpoint that was saved. Returns whether no stop came before the end.
  bool PlayScored(std::ostream& progress);

  const TrainOptions& options_;
  const std::atomic<bool>& stop_;
  const bool grows_;
  at::Device device_;
  OwnStream stream_;
  RecordedFrames frames_;  // without pictures where no frames will be added
  Architecture policy_;
  Parameters parameters_;
  Network network_;
  Optimizer optimizer_;
  std::optional<ImitationStep> step_;
  RunProgress done_;
  TrainingClock clock_{done_};
  std::optional<TrainingLog> log_;
  std::optional<Scorer> scorer_;
  double score_every_ = 0;  // seconds of training
  double logged_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_IMITATION_RUN_H_

#ifndef APPS_TRAIN_IMITATION_TRAIN_ON_DATASET_H_
#define APPS_TRAIN_IMITATION_TRAIN_ON_DATASET_H_

#include <atomic>
#include <ostream>

#include "apps/train/data/recorded_frames.h"
#include "apps/train/imitation/policy.h"
#include "apps/train/imitation/score.h"
#include "apps/train/recipe.h"

namespace mjp::app {

struct ImitationOptions {
  RecordedOptions data;
  ImitationShape shape;
  ScoreOptions score;
};

// Trains a policy on the demonstrations of a data set, of any task; writes the moving average of
// the weights to <out>/checkpoint with every saved state. Of `options` those of the network, the
// optimiser, the step, the device and the run's length count. <out>/log.jsonl, <out>/loss.csv and a
// TensorBoard file get a line for every log_every steps, the latter and <out>/scores.csv one for
// every evaluation that `imitation.score` asks for, <out>/state.safetensors is what a later call
// continues from. Stops soon after `stop` becomes true, with the state saved. Returns whether the
// training is complete. Throws Error for data or options that cannot be used.
bool TrainOnDataset(const ImitationOptions& imitation, const TrainOptions& options, Ranks& ranks,
                    std::ostream& progress, const std::atomic<bool>& stop);

}  // namespace mjp::app

#endif  // APPS_TRAIN_IMITATION_TRAIN_ON_DATASET_H_

#ifndef APPS_TRAIN_RECIPE_H_
#define APPS_TRAIN_RECIPE_H_

#include <atomic>
#include <cstdint>
#include <ostream>
#include <string>

#include "apps/train/data/data_source.h"
#include "apps/train/network/architectures.h"
#include "apps/train/optimisation/optimizer.h"
#include "apps/train/optimisation/ranks.h"
#include "apps/train/optimisation/training_step.h"
#include "apps/train/rounds.h"

namespace mjp::app {

struct TrainOptions {
  ArchitectureOptions architecture;
  OptimizerOptions optimizer;
  StepOptions step;
  DataOptions data;
  RoundOptions rounds;
  std::string out;              // folder of the run: state, log, curves, checkpoint
  std::string device = "auto";  // auto, cuda, cuda:<index>, cpu
  bool full_precision = false;  // float32 rather than bfloat16 on a GPU
  int teacher_steps = 4;        // of DDIM, whose end a student learns
  uint64_t seed = 0;
  int64_t steps = 0;        // of the whole training; 0: `seconds` decides
  double seconds = 0;       // of the whole training; 0: `steps` decides
  double save_every = 60;   // seconds
  int64_t log_every = 100;  // steps
};

// Trains a policy on demonstrations and, where options.rounds asks for it, on the planner's labels
// of its own episodes; writes the moving average of the weights to <out>/checkpoint, with rounds
// the last that did not do clearly worse than an earlier one. <out>/log.jsonl gets one line for
// every log_every steps and for every round, <out>/curves.png shows them, <out>/state.safetensors
// is what a later call continues from. Stops soon after `stop` becomes true, with the state saved.
// To be called by every rank, which share each batch. Returns whether the training is complete.
// Throws Error for data or options that cannot be used.
bool Train(const TrainOptions& options, Ranks& ranks, std::ostream& progress,
           const std::atomic<bool>& stop);

}  // namespace mjp::app

#endif  // APPS_TRAIN_RECIPE_H_

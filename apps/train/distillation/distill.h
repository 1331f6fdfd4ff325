#ifndef APPS_TRAIN_DISTILLATION_DISTILL_H_
#define APPS_TRAIN_DISTILLATION_DISTILL_H_

#include <atomic>
#include <ostream>
#include <string>

#include "apps/train/recipe.h"

namespace mjp::app {

// Makes a student of the policy in `teacher`, for Push-T, that needs one network pass. It starts
// from the teacher's weights. The observations are those of the teacher's own episodes and, where
// options.rounds asks for it, of the student's, plain and disturbed ones; no planner is needed.
// Writes the moving average of the weights to <out>/checkpoint with every saved state.
// <out>/log.jsonl, <out>/loss.csv and a TensorBoard file get a line for every log_every steps,
// <out>/state.safetensors is what a later call continues from, with the rounds of the student in
// <out>/rounds: it plays the teacher's episodes again. With options.steps on the CPU it ends in the
// bits of a run that nobody stopped. Stops soon after `stop` becomes true, with the state saved.
// Returns whether the training is complete. Throws Error for a teacher or options that cannot be
// used.
bool Distill(const std::string& teacher, const TrainOptions& options, Ranks& ranks,
             std::ostream& progress, const std::atomic<bool>& stop);

}  // namespace mjp::app

#endif  // APPS_TRAIN_DISTILLATION_DISTILL_H_

#ifndef APPS_TRAIN_IMITATION_LOG_H_
#define APPS_TRAIN_IMITATION_LOG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "apps/train/event_file.h"
#include "apps/train/imitation/score.h"
#include "apps/train/log_file.h"

namespace mjp::app {

// What is known after some steps. A validation loss that is not a number is left out.
struct LogLine {
  int64_t step = 0;
  double seconds = 0;
  double loss = 0, validation_loss = 0;
  double learning_rate = 0, steps_per_second = 0;
};

// The log of a training run in `folder`: log.jsonl, loss.csv, scores.csv of a run that is scored,
// and a TensorBoard file for each call of the program.
class TrainingLog {
 public:
  // Goes on after step `step`: lines beyond it, of a run that was killed before it saved, go.
  // Throws Error where a file cannot be written.
  TrainingLog(const std::string& folder, int64_t step);

  void Add(const LogLine& line);
  // After step `step` and so many seconds of training.
  void Add(int64_t step, double seconds, const Score& score);

 private:
  const std::string folder_;
  const int64_t begin_;  // step
  LogFile json_, csv_;
  std::optional<LogFile> scores_;
  EventFile events_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_IMITATION_LOG_H_

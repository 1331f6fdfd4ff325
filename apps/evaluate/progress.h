#ifndef APPS_EVALUATE_PROGRESS_H_
#define APPS_EVALUATE_PROGRESS_H_

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "tasks/results/episode.h"

namespace mjp::app {

// One line of an evaluation's progress: a bar, the share of successes with its interval, episodes
// per second and the time that is left. `now` is how many episodes of this run took `seconds`.
std::string ProgressText(size_t done, size_t total, int successes, size_t now, double seconds);

// Prints it on the standard error: on a terminal one line that is rewritten; elsewhere every tenth
// part is a line of its own.
class Progress {
 public:
  Progress(size_t total, const std::map<int, EpisodeResult>& finished);
  void Add(const EpisodeResult& episode);

 private:
  size_t total_, before_, done_;
  int successes_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace mjp::app

#endif  // APPS_EVALUATE_PROGRESS_H_

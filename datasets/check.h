#ifndef DATASETS_CHECK_H_
#define DATASETS_CHECK_H_

#include <functional>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace mjp::datasets {

struct CheckOptions {
  bool pictures = true;  // decode each; else those of an episode's first and last frame
  // Called after each episode with their number so far; false ends the check.
  std::function<bool(int64_t)> progress;
};

struct CheckResult {
  std::vector<std::string> problems;  // each names file and episode
  std::vector<std::string> notes;     // what is odd, but harms nobody
  bool whole = true;                  // false: ended early, by progress or too many problems
};

// Holds everything in a data set against everything else: files against meta/episodes, each frame's
// indices and time, values against their type, shape and statistics, tasks, pictures. LeRobot
// checks hardly any of it. Throws Error only where the data set cannot be opened at all.
CheckResult Check(Dataset& dataset, const CheckOptions& options);

}  // namespace mjp::datasets

#endif  // DATASETS_CHECK_H_

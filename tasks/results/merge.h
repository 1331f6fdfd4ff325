#ifndef TASKS_RESULTS_MERGE_H_
#define TASKS_RESULTS_MERGE_H_

#include <string>
#include <vector>

#include "tasks/results/report.h"

namespace mjp::app {

struct MergeOptions {
  std::vector<std::string> folders;  // results of the shards
  std::string out;                   // folder of the result
  bool partial = false;              // accept missing shards, missing episodes, a torn last line
  bool overwrite = false;            // replace results in `out`
};

struct MergeResult {
  Figures figures;
  std::string task;
  int expected = 0;  // episodes of the whole evaluation
  // The shards are of a build that hashed the weights alone: a change of config.json, processor
  // files or statistics between them cannot be seen.
  bool weights_alone = false;
};

// Writes into `out` what one process would have written for the whole evaluation: byte for byte,
// but for timings (and the videos' folder). Nothing is written unless every shard is of the same
// run, no shard comes twice, and each has exactly its episodes with their seeds; what is odd is an
// Error that names it.
MergeResult Merge(const MergeOptions& options);

}  // namespace mjp::app

#endif  // TASKS_RESULTS_MERGE_H_

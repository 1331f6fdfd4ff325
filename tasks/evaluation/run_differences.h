#ifndef TASKS_EVALUATION_RUN_DIFFERENCES_H_
#define TASKS_EVALUATION_RUN_DIFFERENCES_H_

#include <string>
#include <vector>

namespace mjp::app {

// What sets two evaluations apart, by the texts of their run.json.
struct RunDifference {
  std::string what;        // "--steps", "the checkpoint's config.json", ...
  std::string in_a, in_b;  // "absent" where it does not say
};

// None if both say the same, whatever the layout of their text. `name_a` and `name_b` name the
// files in the Error that is thrown if one is no object of JSON.
std::vector<RunDifference> RunDifferences(const std::string& run_a, const std::string& name_a,
                                          const std::string& run_b, const std::string& name_b);

// "--steps was 10, is 4; ...", for A before and B now.
std::string WasAndIs(const std::vector<RunDifference>& differences);

// Whether the run knows its checkpoint by the weights alone: earlier builds did not keep the hashes
// of config.json, processor files and statistics, so that a change of these cannot be seen.
bool KnowsWeightsAlone(const std::string& run, const std::string& name);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_RUN_DIFFERENCES_H_

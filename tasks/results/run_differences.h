#ifndef TASKS_RESULTS_RUN_DIFFERENCES_H_
#define TASKS_RESULTS_RUN_DIFFERENCES_H_

#include <string>
#include <vector>

namespace mjp::app {

// Keys of run.json. Files: name -> SHA-256 of every file of the checkpoint that changes an action;
// results of earlier builds have the hash of the weights alone, under "checkpoint_sha256".
inline constexpr char kCheckpointFiles[] = "checkpoint_files";
inline constexpr char kTaskKey[] = "task";
// A note for people: by what the pictures differ from those of the training. It follows from the
// checkpoint's look.json, which changes no action, and sets no evaluations apart.
inline constexpr char kUnlikeTraining[] = "unlike_training";

// The task of an evaluation by the text of its run.json. Earlier builds knew the default task alone
// and did not name it. Throws Error that names `file` if the text is no object of JSON.
std::string TaskOf(const std::string& run, const std::string& file);

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

#endif  // TASKS_RESULTS_RUN_DIFFERENCES_H_

#ifndef APPS_TRAIN_DATA_RECORDINGS_H_
#define APPS_TRAIN_DATA_RECORDINGS_H_

#include <string>
#include <vector>

#include "tasks/pusht/planner/demonstration_stream.h"

namespace mjp::app {

// Rows to train on from recorded episodes, e.g. a person's: <prefix>_state.npy (N, 5),
// <prefix>_action.npy (N, 2), the target held from the state of the same row on, and
// <prefix>_episode_ends.npy (E), the row after each episode. Beyond an episode's end its last
// target is repeated. Throws Error naming the file that does not fit.
std::vector<DemonstrationRow> LoadRecordings(const std::string& prefix);

}  // namespace mjp::app

#endif  // APPS_TRAIN_DATA_RECORDINGS_H_

#ifndef APPS_TRAIN_RECORDINGS_H_
#define APPS_TRAIN_RECORDINGS_H_

#include <string>
#include <vector>

#include "task/demonstration_stream.h"

namespace pusht {

// Rows to train on from recorded episodes, e.g. a person's: <prefix>_state.npy (N, 5),
// <prefix>_action.npy (N, 2), the target held from the state of the same row on, and
// <prefix>_episode_ends.npy (E), the row after each episode. Beyond an episode's end its last
// target is repeated. Throws Error naming the file that does not fit.
std::vector<DemonstrationRow> LoadRecordings(const std::string& prefix);

}  // namespace pusht

#endif  // APPS_TRAIN_RECORDINGS_H_

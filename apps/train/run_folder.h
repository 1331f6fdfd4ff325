#ifndef APPS_TRAIN_RUN_FOLDER_H_
#define APPS_TRAIN_RUN_FOLDER_H_

#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace mjp::app {

// Makes the folder of a run, or opens one that is to be continued, for this process alone, as long
// as what is returned lives. What a killed process left half written is removed, and so are the
// rounds of a run whose state is gone: they teach no other. Throws Error where another process
// trains there, and for a folder with a data set, a checkpoint or an evaluation that no run made.
FileDescriptor OpenRunFolder(const std::string& out);

// Keeps in `out`/data.json what a run learns from, or holds it against what is there: a state does
// not go on with other data. A file of an earlier build may lack keys that are `newer`. Throws
// Error where it is another.
void CheckBegun(const std::string& out, Json now, const std::vector<std::string>& newer = {});

}  // namespace mjp::app

#endif  // APPS_TRAIN_RUN_FOLDER_H_

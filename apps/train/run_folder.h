#ifndef APPS_TRAIN_RUN_FOLDER_H_
#define APPS_TRAIN_RUN_FOLDER_H_

#include <string>

#include "base/file.h"

namespace mjp::app {

// Makes the folder of a run, or opens one that is to be continued, for this process alone, as long
// as what is returned lives. What a killed process left half written is removed. Throws Error where
// another process trains there, and for a folder with a data set, a checkpoint or an evaluation
// that no run made.
FileDescriptor OpenRunFolder(const std::string& out);

}  // namespace mjp::app

#endif  // APPS_TRAIN_RUN_FOLDER_H_

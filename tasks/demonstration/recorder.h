#ifndef TASKS_DEMONSTRATION_RECORDER_H_
#define TASKS_DEMONSTRATION_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "tasks/demonstration/demonstration_writer.h"
#include "tasks/demonstration/demonstrator.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// How far a recording has come.
struct RecordProgress {
  int64_t played = 0, succeeded = 0;  // starts, since the command began
  int64_t ended = 0;                  // episodes of the data set that cannot be lost any more
  int64_t saved = 0;                  // of those, readable by all
};

// Lets demonstrators play the task's starts one after the other and puts episodes into a data set
// (datasets/recording/writer.h). Each is played a second time from its recorded actions, drawn
// then, and must give the same states bit for bit. `on_progress` is called after each start and as
// episodes become readable. Stops soon after `stop` becomes true, with all ended episodes saved.
// Throws Error for a folder that was recorded in another way, naming what differs, and where none
// of the last 200 starts was kept.
RecordProgress Record(const RecordOptions& options, std::shared_ptr<const TaskFile> file,
                      const DemonstratorFactory& demonstrators,
                      const std::function<void(const RecordProgress&)>& on_progress,
                      const std::atomic<bool>& stop);

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_RECORDER_H_

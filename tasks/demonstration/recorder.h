#ifndef TASKS_DEMONSTRATION_RECORDER_H_
#define TASKS_DEMONSTRATION_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tasks/demonstration/demonstrator.h"
#include "tasks/demonstration/frames.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

struct RecordOptions {
  std::string out;        // folder of the data set; one that was recorded so is continued
  std::string by;         // who demonstrates, as the folder remembers it
  int64_t episodes = 50;  // that the data set is to have
  uint32_t seed = 0;      // of the first start; the others follow
  bool keep_all = false;  // also episodes without success
  int steps = 0;          // at most, of an episode; 0: as the task says
  int threads = 1;        // that play episodes; the data set is the same
  PictureOptions pictures;
};

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

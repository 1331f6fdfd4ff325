#ifndef TASKS_DEMONSTRATION_DEMONSTRATION_WRITER_H_
#define TASKS_DEMONSTRATION_DEMONSTRATION_WRITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "datasets/recording/writer.h"
#include "tasks/demonstration/demonstration.h"
#include "tasks/demonstration/episode_world.h"
#include "tasks/demonstration/frames.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

struct RecordOptions {
  std::string out;  // folder of the data set; one that was recorded so is continued
  std::string by;   // who demonstrates, as the folder remembers it
  std::map<std::string, std::string> settings;  // of who demonstrates: what its actions depend on
  int64_t episodes = 50;                        // that the data set is to have
  uint32_t seed = 0;                            // of the first start; the others follow
  bool keep_all = false;                        // also episodes without success
  int steps = 0;                                // at most, of an episode; 0: as the task says
  int threads = 1;                              // that play episodes; the data set is the same
  PictureOptions pictures;
};

// Puts demonstrations into a data set (datasets/recording/writer.h). Each is played a second time
// from its recorded actions, drawn then, and must give the same states bit for bit.
class DemonstrationWriter {
 public:
  // Begins a data set or goes on with one, and takes in what a killed recorder left. Throws Error
  // for a folder that was recorded in another way, naming what differs.
  DemonstrationWriter(const RecordOptions& options, std::shared_ptr<const TaskFile> file);

  // When it returns the episode is on the disk. Throws Error where the demonstration does not come
  // out the same again; nothing of it is kept then.
  void Save(const Demonstration& shown);
  // Waits until all episodes can be read.
  void Finish() { writer_.Finish(); }

  int64_t episodes() const { return writer_.episodes(); }  // that cannot be lost any more
  int64_t saved() const { return writer_.saved(); }        // of those, readable by all
  // Seed of the next start: after that of the data set's last episode when this was made.
  uint64_t next_seed() const { return next_seed_; }

 private:
  std::shared_ptr<const TaskFile> file_;
  FrameMaker frames_;
  datasets::DatasetWriter writer_;
  EpisodeWorld replay_;
  uint64_t next_seed_;
};

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_DEMONSTRATION_WRITER_H_

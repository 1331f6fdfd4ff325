#ifndef APPS_TRAIN_EVENT_FILE_H_
#define APPS_TRAIN_EVENT_FILE_H_

#include <cstdint>
#include <fstream>
#include <string>

namespace mjp::app {

// A file of scalars that TensorBoard reads: records of TensorFlow's tfrecord format, each an Event
// of its event.proto. Every run has a file of its own, events.out.tfevents.*, in a folder.
class EventFile {
 public:
  // Throws Error where the file cannot be made.
  EventFile(const std::string& folder, double now);

  // Adds a value and writes it to the file. `now`: seconds since 1970.
  void Add(const std::string& tag, int64_t step, double value, double now);

  const std::string& path() const { return path_; }

 private:
  void Write(const std::string& event);

  std::string path_;
  std::ofstream file_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_EVENT_FILE_H_

#ifndef TASKS_MJCF_CHECK_ATTRIBUTES_H_
#define TASKS_MJCF_CHECK_ATTRIBUTES_H_

#include <string>
#include <vector>

#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// What looks wrong in the attributes of a file's policy, as a sentence each: a period that may be
// meant in milliseconds, cameras in another order than the pictures of `config`, which may be null.
std::vector<std::string> AttributeWarnings(const TaskFile& file, const PolicyConfig* config);

// Which camera gives each picture of `config`: "observation.images.front <- wrist".
std::vector<std::string> CameraOrder(const TaskFile& file, const PolicyConfig& config);

// Counts the starts of a file at which its condition of success or failure holds already.
class OverAtStart {
 public:
  explicit OverAtStart(const Rules& rules) : rules_(rules) {}

  // `sensors` is sensordata at a start, up to date.
  void See(const mjtNum* sensors);
  // A sentence for each of the two that held.
  std::vector<std::string> Warnings() const;

 private:
  const Rules& rules_;
  int starts_ = 0, succeeded_ = 0, failed_ = 0;
};

}  // namespace mjp::app

#endif  // TASKS_MJCF_CHECK_ATTRIBUTES_H_

#ifndef APPS_TRAIN_DATA_LESSONS_H_
#define APPS_TRAIN_DATA_LESSONS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "apps/train/data/recorded_frames.h"
#include "tasks/demonstration/lessons/lesson_options.h"

namespace mjp::app {

class TaskFile;

// Which lessons to play.
struct LessonPlan {
  int count = 0;           // starts
  uint32_t seed = 0;       // of the first one
  double validation = 0;   // share that is held out
  std::string checkpoint;  // of the learner who plays first; "": the teacher alone
};

// What came of them.
struct PlayedLessons {
  RecordedFrames frames;  // of the lessons that ended in success; none: not to be used
  int taught = 0;         // such lessons
  int succeeded = 0;      // starts that the learner managed alone
  int lost = 0;           // starts that the learner failed for good
};

// By which attributes of the policy the learner of `checkpoint` plays, on the trainer's device: on
// the CPU where how.cuda_device is negative. It plays as it is trained, however the checkpoint says
// that the trained policy is executed: at temperature 1 and, where the task file has no
// action_steps, whole chunks. Throws Error for a checkpoint that cannot be read.
std::map<std::string, std::string> LearnerAttributes(const TaskFile& file, const LessonOptions& how,
                                                     const std::string& checkpoint);

// Plays lessons of a task file's expert.
class LessonSchool {
 public:
  // `model`: a task file. Throws Error where it has no expert.
  LessonSchool(const std::string& model, const LessonOptions& how, int threads);

  // What the task is called.
  std::string task() const;

  // Plays them on all threads: a function of the plan, the learner's weights and the options. May
  // be incomplete once `stop` is true.
  PlayedLessons Play(const LessonPlan& plan, const std::atomic<bool>& stop) const;

 private:
  std::shared_ptr<const TaskFile> file_;
  LessonOptions how_;
  int threads_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_DATA_LESSONS_H_

#ifndef TASKS_DEMONSTRATION_LESSONS_LESSON_H_
#define TASKS_DEMONSTRATION_LESSONS_LESSON_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "datasets/recording/spool.h"
#include "tasks/demonstration/action_ranges.h"
#include "tasks/demonstration/demonstrator.h"
#include "tasks/demonstration/episode_world.h"
#include "tasks/demonstration/frames.h"
#include "tasks/demonstration/lessons/lesson_options.h"

namespace mjp::app {

// How a lesson ends.
enum class LessonEnd {
  kTaught,     // by the teacher's success
  kMissed,     // by time or failure, and the teacher had not succeeded
  kSucceeded,  // before it began: the learner succeeded by itself
  kLost,       // before it began: the learner failed for good
};

// What a teacher did from the start of an episode, or from where a learner had got to.
struct Lesson {
  // As FrameMaker::Look has them, with the taught action; every picture_every-th with pictures,
  // from a random one on. None of a lesson that did not begin.
  std::vector<datasets::Frame> frames;
  LessonEnd end = LessonEnd::kMissed;
};

// Plays lessons: what is executed strays from what is taught, so that the frames tell the way back
// from beside the way as well (Laskey et al. 2017, DART). Not thread-safe.
class LessonPlayer {
 public:
  // Throws Error where the file's actions have no range.
  LessonPlayer(std::shared_ptr<const TaskFile> file, std::unique_ptr<Demonstrator> teacher,
               const LessonOptions& options);

  // The lesson of `seed`: a function of the seed and the options.
  Lesson Play(uint32_t seed);
  // The same, from a time in the second third of the episode or later up to which `learner` has
  // played it (Ross et al. 2011, DAgger): the teacher shows how to go on.
  Lesson PlayAfter(Demonstrator& learner, uint32_t seed);

 private:
  // Lets the learner play so many control steps. Returns how the episode ended before, if it did.
  std::optional<LessonEnd> Learn(Demonstrator& learner, uint32_t seed, int steps);
  void Teach(uint32_t seed, Lesson& lesson);

  std::shared_ptr<const TaskFile> file_;
  std::unique_ptr<Demonstrator> teacher_;
  LessonOptions options_;
  EpisodeWorld world_;
  FrameMaker looks_;
  std::vector<ActionRange> ranges_;
};

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_LESSONS_LESSON_H_

#ifndef TASKS_DEMONSTRATION_LESSON_OPTIONS_H_
#define TASKS_DEMONSTRATION_LESSON_OPTIONS_H_

#include <cstdint>

namespace mjp::app {

// How lessons (lesson.h) are played and seen.
struct LessonOptions {
  double noise = 0;    // mean deviation of what is executed from what is taught, share of the range
  uint32_t style = 0;  // of the teacher: the seed by which it begins, the same in every lesson
  int run_on = 100;    // control steps for which a lesson goes on after its first success
  int picture_every = 1;      // control steps from one frame with pictures to the next
  int width = 0, height = 0;  // of pictures, as PictureOptions has them
  int cuda_device = -1;       // on which they are drawn, if OpenGL can; negative: any
};

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_LESSON_OPTIONS_H_

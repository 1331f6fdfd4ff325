#ifndef TASKS_DEMONSTRATION_FRAMES_H_
#define TASKS_DEMONSTRATION_FRAMES_H_

#include <memory>
#include <string>
#include <vector>

#include "datasets/format/info.h"
#include "datasets/recording/spool.h"
#include "plugin/pictures/picture_history.h"
#include "tasks/demonstration/demonstration.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// How pictures are recorded.
struct PictureOptions {
  int width = 0, height = 0;  // pixels; 0: the camera's resolution in the model, else 320 x 240
  bool video = false;         // AV1 instead of PNG files

  // Reads "320x240". Throws Error naming `option`.
  void SetSize(const char* option, const std::string& text);
  int cuda_device = -1;       // on which they are drawn, if OpenGL can; negative: any
};

// Size of a camera's pictures.
struct PictureSize {
  int width, height;
};
PictureSize SizeOf(const mjModel* model, const std::string& camera, const PictureOptions& options);

// What a data set of a task file is made of: observation.state, observation.environment_state and
// observation.images.<camera> where the policy sees such, action, next.reward, next.success,
// next.done and seed, that of the episode. Rate, names and the camera's sizes are the file's.
// Throws Error where the control period is no whole number of frames a second.
datasets::Info InfoOf(const TaskFile& file, const PictureOptions& options);

// What is being done, in words: text task.description, else the policy's instruction, else the name
// of the model.
std::string DescriptionOf(const TaskFile& file);

// Looks at simulations of a task file as its policy in the plugin would.
class FrameMaker {
 public:
  // `file` must outlive this. Throws Error where a camera cannot be drawn.
  FrameMaker(const TaskFile& file, const PictureOptions& options);
  ~FrameMaker();

  // What the policy sees of `world`: numbers, and pictures if they are asked for.
  datasets::Frame Look(EpisodeWorld& world, bool pictures = true);
  // The frame of control step `step` of `demonstration`, which begins from `world`.
  datasets::Frame Make(EpisodeWorld& world, const Demonstration& demonstration, int step);

 private:
  struct Camera {
    std::string feature;
    PictureSize size;
    std::unique_ptr<PictureHistory> pictures;
  };

  const TaskFile& file_;
  const std::string description_;
  std::vector<Camera> cameras_;
  std::vector<mjtNum> pose_;
};

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_FRAMES_H_

#ifndef TASKS_MJCF_FILM_H_
#define TASKS_MJCF_FILM_H_

#include <memory>
#include <string>
#include <vector>

#include "plugin/pictures/picture_source.h"
#include "tasks/evaluation/task.h"
#include "tasks/mjcf/task_file.h"
#include "tasks/recording/video.h"

namespace mjp::app {

// The film of an episode of a task file: what the policy's first camera, or else the model's,
// shows, 640 x 480, with seed, step and score below. At most 25 pictures a second of simulation.
class WorldFilm : public EpisodeFilm {
 public:
  // Writes <stem>.mp4 (or .avi) of the world that `model` and `data` are. Throws Error where it
  // cannot be created, the model has no camera, or nothing draws on this machine.
  WorldFilm(const std::string& stem, const TaskFile& file, mjModel* model, mjData* data,
            VideoWriter::Before before = VideoWriter::Before::kReplaced);

  void Add(const EpisodeResult& episode) override;
  std::string Close() override;

 private:
  mjModel* model_;
  mjData* data_;
  std::unique_ptr<PictureSource> source_;
  std::unique_ptr<VideoWriter> writer_;
  std::vector<uint8_t> view_;
  int stride_;  // control steps for one picture
};

}  // namespace mjp::app

#endif  // TASKS_MJCF_FILM_H_

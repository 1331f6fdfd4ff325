#ifndef TASKS_MJCF_VIDEO_H_
#define TASKS_MJCF_VIDEO_H_

#include <memory>
#include <string>
#include <vector>

#include "plugin/model/config.h"
#include "plugin/pictures/picture_source.h"
#include "tasks/evaluation/task.h"
#include "tasks/recording/video.h"

namespace mjp::app {

// The camera that videos are made with: the policy's first, or else the model's. Throws Error where
// there is none.
std::string VideoCamera(const mjModel* model, const Config& config);

// The video of an episode: what a camera shows, 640 x 480, with seed, step and score below. At most
// 25 pictures a second of simulation.
class WorldVideo : public EpisodeVideo {
 public:
  // Writes <stem>.mp4 (or .avi) of the world that `model` and `data` are, whose control steps take
  // `period` seconds. Throws Error where it cannot be created, or nothing draws on this machine.
  WorldVideo(const std::string& stem, const std::string& camera, double period, mjModel* model,
             mjData* data);

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

#endif  // TASKS_MJCF_VIDEO_H_

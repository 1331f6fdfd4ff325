#ifndef TASKS_PUSHT_EPISODE_VIDEO_H_
#define TASKS_PUSHT_EPISODE_VIDEO_H_

#include <functional>
#include <memory>
#include <string>

#include "tasks/evaluation/task.h"
#include "tasks/pusht/physics/state.h"
#include "tasks/recording/video.h"

namespace mjp::app {

// The video of one episode, ten pictures a second: the scene, beside it what the policy sees, below
// them seed, step, coverage and score.
class PushtVideo : public EpisodeVideo {
 public:
  // Writes <folder>/eval_episode_<index>.mp4 (or .avi) of what `now` says is the state. Throws
  // Error if it cannot be created.
  PushtVideo(const std::string& folder, const EpisodeResult& episode, std::function<State()> now);

  void Add(const EpisodeResult& episode) override;
  std::string Close() override;

 private:
  std::unique_ptr<VideoWriter> writer_;
  std::function<State()> now_;
};

}  // namespace mjp::app

#endif  // TASKS_PUSHT_EPISODE_VIDEO_H_

#ifndef TASKS_RECORDING_EPISODE_VIDEO_H_
#define TASKS_RECORDING_EPISODE_VIDEO_H_

#include <memory>
#include <string>

#include "tasks/evaluation/episode.h"
#include "tasks/pusht/physics/state.h"
#include "tasks/recording/video.h"

namespace mjp::app {

// The film of one episode, ten pictures a second: the scene, beside it what the policy sees, below
// them seed, step, coverage and score.
class EpisodeVideo {
 public:
  // Writes <folder>/eval_episode_<index>.mp4 (or .avi). Throws Error if it cannot be created.
  EpisodeVideo(const std::string& folder, const EpisodeResult& episode);

  // Appends a control step.
  void Add(const State& state, const EpisodeResult& episode);
  // Completes the film and returns its file.
  std::string Close();

 private:
  std::unique_ptr<VideoWriter> writer_;
};

}  // namespace mjp::app

#endif  // TASKS_RECORDING_EPISODE_VIDEO_H_

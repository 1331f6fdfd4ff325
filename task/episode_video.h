#ifndef TASK_EPISODE_VIDEO_H_
#define TASK_EPISODE_VIDEO_H_

#include <memory>
#include <string>

#include "task/episode.h"
#include "task/state.h"
#include "task/video.h"

namespace pusht {

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

}  // namespace pusht

#endif  // TASK_EPISODE_VIDEO_H_

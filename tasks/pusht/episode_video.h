#ifndef TASKS_PUSHT_EPISODE_VIDEO_H_
#define TASKS_PUSHT_EPISODE_VIDEO_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/checkpoint/config.h"
#include "tasks/evaluation/task.h"
#include "tasks/pusht/options.h"
#include "tasks/pusht/physics/state.h"
#include "tasks/recording/video.h"

namespace mjp::app {

// What disturbs the rasteriser's pictures on their way to a policy; none where it has other
// pictures, or none.
std::optional<Conditions> SeenThrough(RendererKind renderer, const Conditions& conditions,
                                      const mjp::PolicyConfig& config);

// A small picture of the scene in a video.
struct SceneView {
  std::string caption;
  std::vector<uint8_t> picture;  // (96, 96, 3) RGB
};

// `state` at control step `tick` as the policy sees it, or, without `seen`, as it is.
SceneView ViewOf(const State& state, const std::optional<Conditions>& seen, uint32_t seed,
                 int tick);

// The video of one episode, ten pictures a second: the scene, beside it a SceneView, below them
// seed, step, coverage and score.
class PushtVideo : public EpisodeVideo {
 public:
  // Writes <folder>/eval_episode_<index>.mp4 (or .avi) of what `now` says is the state. `seen` as
  // ViewOf has it. Throws Error if it cannot be created.
  PushtVideo(const std::string& folder, const EpisodeResult& episode,
             const std::optional<Conditions>& seen, std::function<State()> now);

  void Add(const EpisodeResult& episode) override;
  std::string Close() override;

 private:
  std::unique_ptr<VideoWriter> writer_;
  const std::optional<Conditions> seen_;
  std::function<State()> now_;
};

}  // namespace mjp::app

#endif  // TASKS_PUSHT_EPISODE_VIDEO_H_

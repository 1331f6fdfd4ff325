#include "tasks/pusht/episode_video.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tasks/pusht/observation.h"
#include "tasks/pusht/physics/reset.h"

namespace mjp::app {
namespace {

constexpr uint32_t kSeed = 100003;
constexpr int kTick = 7;

class EpisodeVideoTest : public ::testing::Test {
 protected:
  EpisodeVideoTest() {
    config_.n_obs_steps = 1;
    config_.action_dim = 2;
    config_.cameras = {{"observation.image", 3, 96, 96}};
  }

  // The picture that a policy gets.
  std::vector<uint8_t> Observed(const Conditions& conditions) const {
    const ModelPtr model = LoadModel(ModelPath("pusht.xml"));
    const Scene scene(model.get());
    Observer observer(RendererKind::kRaster, conditions, config_, scene);
    const Snapshot snapshot{state_, std::vector<mjtNum>(model->nq)};
    observer.Add({&snapshot, 1}, kSeed, kTick, 0);
    const mjp::PolicyInput input = observer.Input();
    return {input.frames.begin(), input.frames.end()};
  }

  const State state_ = BenchmarkStart(kSeed);
  mjp::PolicyConfig config_;
};

TEST_F(EpisodeVideoTest, ShowsThePicturesThatThePolicyGets) {
  Conditions disturbed[3];
  disturbed[0].picture_noise = 30;
  disturbed[1].brightness = 0.5;
  disturbed[2].picture_shift = 10;
  const std::vector<uint8_t> plain = ViewOf(state_, Conditions(), kSeed, kTick).picture;
  for (const Conditions& conditions : disturbed) {
    const auto seen = SeenThrough(RendererKind::kRaster, conditions, config_);
    const SceneView view = ViewOf(state_, seen, kSeed, kTick);
    EXPECT_EQ(view.caption, "what the policy sees");
    EXPECT_EQ(view.picture, Observed(conditions));
    EXPECT_NE(view.picture, plain);
  }
}

TEST_F(EpisodeVideoTest, CallsNothingSeenThatThePolicyDoesNotSee) {
  Conditions noisy;
  noisy.picture_noise = 30;
  const std::vector<uint8_t> plain = ViewOf(state_, Conditions(), kSeed, kTick).picture;
  const auto other = SeenThrough(RendererKind::kMujoco, noisy, config_);
  config_.cameras.clear();
  for (const auto& seen : {other, SeenThrough(RendererKind::kRaster, noisy, config_)}) {
    const SceneView view = ViewOf(state_, seen, kSeed, kTick);
    EXPECT_EQ(view.caption, "the scene");
    EXPECT_EQ(view.picture, plain);
  }
}

}  // namespace
}  // namespace mjp::app

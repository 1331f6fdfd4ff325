// What a batch of a task file asks for.

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tasks/evaluation/evaluation.h"
#include "tasks/mjcf/batch/mjcf_batch.h"
#include "tasks/mjcf/mjcf_task.h"
#include "tests/tasks/mjcf/task_text.h"

namespace mjp::app {
namespace {

// A policy of one camera that says it runs on `device`; it is asked for nothing else.
class PolicyOnDevice final : public Policy {
 public:
  explicit PolicyOnDevice(int device)
      : Policy(CheckpointOfCamera(), OptionsOn(device)), device_(device) {}

  void Infer(const PolicyInput&, PolicyOutput&) override { FAIL() << "no episode runs"; }
  int device_ordinal() const override { return device_; }
  std::string Description() const override { return "on a device"; }

 private:
  static std::shared_ptr<const Checkpoint> CheckpointOfCamera() {
    auto checkpoint = std::make_shared<Checkpoint>();
    checkpoint->config.type = "diffusion";
    checkpoint->config.state_dim = checkpoint->config.action_dim = 1;
    checkpoint->config.cameras = {{"observation.image", 3, 48, 64}};
    return checkpoint;
  }
  static PolicyOptions OptionsOn(int device) {
    PolicyOptions options;
    options.backend = device < 0 ? Backend::kCpu : Backend::kCuda;
    return options;
  }

  int device_;
};

class DrawsNothing final : public PictureSource {
 public:
  void Render(const mjModel*, mjData*, std::span<uint8_t>) override {}
};

using MjcfBatchTest = mjp_test::TaskTextTest;

TEST_F(MjcfBatchTest, PicturesAreAskedForOnThePolicysGpu) {
  static std::vector<int> asked;
  RegisterPictureSource("recorder", [](const mjModel*, const PictureRequest& request) {
    asked.push_back(request.cuda_device);
    return std::make_unique<DrawsNothing>();
  });
  const std::string pictures =
      "<config key=\"camera\" value=\"front\"/><config key=\"renderer\" value=\"recorder\"/>";
  const MjcfTask task(std::make_shared<TaskFile>(Load(Basic(), pictures)));
  const std::atomic<bool> never = false;
  for (const int device : {1, 0, -1}) {
    Evaluate(
        task, {}, std::make_unique<PolicyOnDevice>(device), {}, [](const EpisodeResult&) {}, never);
  }
  EXPECT_THAT(asked, ::testing::ElementsAre(1, 0, -1));
}

}  // namespace
}  // namespace mjp::app

#ifndef TASKS_MJCF_BATCH_MJCF_BATCH_H_
#define TASKS_MJCF_BATCH_MJCF_BATCH_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/model/units.h"
#include "plugin/pictures/picture_history.h"
#include "tasks/evaluation/task.h"
#include "tasks/mjcf/task_file.h"
#include "tasks/mjcf/world.h"

namespace mjp::app {

// Simulations of a task file with the policy beside them: what the plugin would see is read and
// drawn here, so that decisions of many episodes share a batch.
class MjcfBatch : public BatchSimulations {
 public:
  // Throws Error where the policy does not fit the file, or nothing draws here.
  MjcfBatch(std::shared_ptr<const TaskFile> file, const EvaluationOptions& options,
            const mjp::Policy& policy, int count);
  ~MjcfBatch() override;

  void Start(int i, uint32_t seed) override;
  std::span<const double> State(int i) const override { return robots_[i].state; }
  std::span<const double> PreviousState(int i) const override { return robots_[i].previous; }
  void Judge(int i, StepOutcome& outcome) const override;
  std::unique_ptr<EpisodeVideo> MakeVideo(int i, const std::string& folder,
                                          const EpisodeResult& episode) override;
  std::vector<double> HeldAction(int i) const override;
  void Disturb(int, uint32_t, int) override {}
  void Step(std::span<const int> ids, std::span<const double> actions) override;
  void Observe(std::span<const int> ids) override;
  void ClearInput() override;
  void AddInput(int i, uint32_t seed, int tick, uint32_t decision) override;
  mjp::PolicyInput Input() override;
  Seconds seconds() const override { return seconds_; }

 private:
  // What the policy is shown of one control step.
  struct Look {
    std::vector<float> state, environment;
    std::vector<mjtNum> pose;
    int tick = 0;
    // the picture (cameras, height, width, 3): on the policy's GPU or else here; neither: not drawn
    std::shared_ptr<const GpuPicture> on_gpu;
    std::vector<uint8_t> rgb;
  };
  struct Robot {
    std::shared_ptr<mjModel> model;  // of all robots, unless starts change it
    std::unique_ptr<TaskWorld> world;
    DataPtr data;
    std::unique_ptr<UnitCheck> units;  // says what the plugin would say
    uint32_t seed = 0;
    int tick = 0;
    bool moved = false;  // an action was taken; before it the controls are the start's
    std::vector<mjtNum> held;
    std::vector<Look> looks;  // the last n_obs_steps control steps, oldest first
    std::vector<double> state, previous;
    StepOutcome outcome;
  };
  struct Fresh {  // a picture that has just been drawn
    uint32_t seed;
    Look* look;
  };

  void MakePictures(int device);  // PictureRequest::cuda_device
  void Move(Robot& robot, std::span<const double> action);
  Look Take(Robot& robot) const;
  void Draw(std::span<const int> ids);
  void DisturbAll(std::span<const Fresh> fresh) const;
  void AddPicture(const Look& look);

  std::shared_ptr<const TaskFile> file_;
  const Conditions conditions_;
  const mjp::PolicyConfig config_;
  const int threads_;
  std::vector<Robot> robots_;
  std::unique_ptr<PictureHistory> pictures_;  // null: the policy has no camera
  DataPtr scratch_;                           // that is drawn
  Seconds seconds_;
  // the input
  std::vector<std::shared_ptr<const GpuPicture>> gpu_pictures_;
  std::vector<uint8_t> frames_;  // where one of them is not on the GPU
  std::vector<float> state_, environment_;
  std::vector<mjp::NoiseKey> keys_;
};

}  // namespace mjp::app

#endif  // TASKS_MJCF_BATCH_MJCF_BATCH_H_

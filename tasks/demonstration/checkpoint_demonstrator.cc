#include "tasks/demonstration/checkpoint_demonstrator.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "plugin/state.h"
#include "tasks/demonstration/action_ranges.h"

namespace mjp::app {
namespace {

// Shows each state to a simulation that has the policy in it, and reads what it would drive.
class CheckpointDemonstrator : public Demonstrator {
 public:
  CheckpointDemonstrator(std::shared_ptr<const TaskFile> file, const mjModel* model)
      : file_(std::move(file)),
        model_(CopyOfModel(model)),
        data_(MakeData(model_.get())),
        state_(static_cast<size_t>(mj_stateSize(model_.get(), kStateWithoutPlugins))) {}

  void Begin(uint32_t seed, const mjModel* model, const mjData*) override {
    if (file_->start().changes_model()) Start::CopyDrawn(model, model_.get());
    mj_resetData(model_.get(), data_.get());
    SetEpisodeSeed(model_.get(), data_.get(), seed);
  }

  void Act(const mjModel* model, const mjData* data, std::span<mjtNum> action) override {
    mj_getState(model, data, state_.data(), kStateWithoutPlugins);
    mj_setState(model_.get(), data_.get(), state_.data(), kStateWithoutPlugins);
    mj_forward(model_.get(), data_.get());
    if (PolicyFailed(model_.get(), data_.get())) {
      throw Error(ExitCode::kPartial, "the policy failed; its warning above says why");
    }
    ActionOf(file_->policy().controls, data_.get(), action);
  }

 private:
  std::shared_ptr<const TaskFile> file_;
  ModelPtr model_;
  DataPtr data_;
  std::vector<mjtNum> state_;
};

}  // namespace

DemonstratorFactory CheckpointDemonstrators(std::shared_ptr<const TaskFile> file,
                                            const std::map<std::string, std::string>& attributes) {
  SetAttributesInstead(attributes);
  const std::shared_ptr<mjModel> model(LoadModel(file->path()).release(), ModelDeleter());
  model->opt.disableflags = file->model()->opt.disableflags;
  return [file = std::move(file), model] {
    return std::make_unique<CheckpointDemonstrator>(file, model.get());
  };
}

}  // namespace mjp::app

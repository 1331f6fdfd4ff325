#include "tasks/pusht/evaluation/pusht_task.h"

#include "base/error.h"
#include "plugin/pictures/mujoco_renderer.h"
#include "tasks/pusht/evaluation/batch.h"
#include "tasks/pusht/evaluation/hosted.h"
#include "tasks/pusht/observation.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/pusht/pictures/raster_source.h"
#include "tasks/task_names.h"

namespace mjp::app {

std::string PushtTask::name() const { return kPusht; }

Settings PushtTask::settings() const {
  return {{"renderer", options_.renderer == RendererKind::kRaster ? "raster" : "mujoco"},
          {"physics", options_.physics == PhysicsKind::kMujoco ? "mujoco" : "chipmunk"}};
}

Settings PushtTask::conditions() const {
  return {{"push", options_.push},
          {"pushes", static_cast<double>(options_.pushes)},
          {"success_coverage", options_.success_coverage}};
}

const mjp::SceneDrawer* PushtTask::scene_drawer() const { return &mjp::FlatSceneDrawer(); }

std::vector<mjp::PictureLook> PushtTask::Looks(const mjp::PolicyConfig& config) const {
  if (config.cameras.empty()) return {};
  if (options_.renderer == RendererKind::kRaster) return {RasterLook()};
  return mjp::MujocoLooks(LoadModel(ModelPath("pusht.xml")).get(), {.cameras = {kPolicyCamera}});
}

std::unique_ptr<BatchSimulations> PushtTask::MakeBatch(const EvaluationOptions& options,
                                                       const mjp::Policy& policy, int count) const {
  return std::make_unique<PushtBatch>(options_, options, policy.config(), count);
}

void PushtTask::CheckHosted() const {
  if (options_.physics == PhysicsKind::kMujoco && options_.push == 0) return;
  throw mjp::Error(mjp::ExitCode::kUsage,
                   "--through plugin runs the scene as it is: another physics and pushes need "
                   "--through batch");
}

std::unique_ptr<HostedSimulation> PushtTask::MakeHosted(const EvaluationOptions& options,
                                                        const mjp::PolicyConfig& config) const {
  return std::make_unique<PushtHosted>(options_, options, config);
}

}  // namespace mjp::app

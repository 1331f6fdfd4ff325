#include "tasks/pusht/observation.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/threads.h"
#include "tasks/evaluation/disturbances.h"
#include "tasks/pusht/physics/table.h"
#include "tasks/pusht/pictures/drawn_scene.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/pusht/pictures/raster_source.h"

namespace mjp::app {
namespace {

void CheckInputs(const mjp::PolicyConfig& config) {
  const auto refuse = [](const std::string& what) {
    throw mjp::BadInput("this checkpoint cannot drive Push-T: " + what);
  };
  if (config.action_dim != 2) {
    refuse("it has " + std::to_string(config.action_dim) + " actions, the agent has 2");
  }
  if (config.state_dim != 0 && config.state_dim != 2) {
    refuse("observation.state has " + std::to_string(config.state_dim) +
           " numbers, the agent's position has 2");
  }
  if (config.environment_dim != 0 && config.environment_dim != 16) {
    refuse("observation.environment_state has " + std::to_string(config.environment_dim) +
           " numbers, the block's vertices have 16");
  }
  if (config.cameras.size() > 1) refuse("it wants more than one camera");
  for (const mjp::CameraFeature& camera : config.cameras) {
    if (camera.height != mjp::kPictureSize || camera.width != mjp::kPictureSize) {
      refuse("its pictures are " + std::to_string(camera.width) + "x" +
             std::to_string(camera.height) + ", Push-T's are 96x96");
    }
  }
}

// The rasteriser draws the benchmark's scene whatever the model has, so the model must have that.
void CheckShown(const mjModel* model) {
  const int camera = mj_name2id(model, mjOBJ_CAMERA, kPolicyCamera);
  const std::string difference =
      camera < 0 ? "it has no camera \"top\"" : DifferenceFromDrawn(model, camera);
  if (difference.empty()) return;
  throw mjp::BadInput("the model does not show what the renderer \"raster\" draws: " + difference +
                      "; evaluate with renderer \"mujoco\", or take models/pusht.xml as it is");
}

}  // namespace

std::array<float, 16> BlockVertices(const State& state) {
  // the original engine keeps each hull counter-clockwise from its leftmost vertex
  constexpr double kLocal[8][2] = {{-60, 0},  {60, 0},  {60, 30},  {-60, 30},
                                   {-15, 30}, {15, 30}, {15, 120}, {-15, 120}};
  const double c = std::cos(state.block_angle), s = std::sin(state.block_angle);
  std::array<float, 16> out;
  for (int i = 0; i < 8; ++i) {
    out[2 * i] = static_cast<float>(state.block_x + c * kLocal[i][0] - s * kLocal[i][1]);
    out[2 * i + 1] = static_cast<float>(state.block_y + s * kLocal[i][0] + c * kLocal[i][1]);
  }
  return out;
}

Observer::Observer(RendererKind renderer, const Conditions& conditions,
                   const mjp::PolicyConfig& config, const Scene& scene, int threads)
    : conditions_(conditions),
      config_(config),
      scene_(scene),
      threads_(threads),
      disturbs_(DisturbsPictures(conditions)) {
  CheckInputs(config);
  CheckBenchmarkGoal(scene.model());
  if (config.cameras.empty()) return;
  if (renderer == RendererKind::kRaster) CheckShown(scene.model());
  if (renderer == RendererKind::kMujoco) {
    mjp::PictureRequest request;
    request.cameras = {kPolicyCamera};
    source_ = mjp::CreatePictureSource("mujoco", scene.model(), request);
    data_ = MakeData(scene.model());
  }
}

void Observer::Clear() {
  keys_.clear();
  scenes_.clear();
  frames_.clear();
  disturbed_.clear();
  state_.clear();
  environment_.clear();
}

void Observer::Add(std::span<const Snapshot> history, uint32_t seed, int tick, uint32_t decision) {
  keys_.push_back({seed, decision});
  for (const Snapshot& snapshot : history) {
    if (config_.state_dim == 2) {
      state_.push_back(static_cast<float>(snapshot.state.agent_x));
      state_.push_back(static_cast<float>(snapshot.state.agent_y));
    }
    if (config_.environment_dim == 16) {
      const std::array<float, 16> vertices = BlockVertices(snapshot.state);
      environment_.insert(environment_.end(), vertices.begin(), vertices.end());
    }
  }
  if (!config_.cameras.empty()) AddPictures(history, seed, tick);
}

void Observer::AddPictures(std::span<const Snapshot> history, uint32_t seed, int tick) {
  const int steps = static_cast<int>(history.size());
  for (int i = 0; i < steps; ++i) {
    const mjp::FlatScene scene = ToFlatScene(history[i].state);
    if (!source_ && !disturbs_) {
      scenes_.push_back(scene);
      continue;
    }
    frames_.resize(frames_.size() + mjp::kPictureBytes);
    if (source_) DrawWithMujoco(history[i], std::span(frames_).last(mjp::kPictureBytes));
    if (disturbs_) disturbed_.push_back({scene, seed, std::max(0, tick - (steps - 1 - i))});
  }
}

void Observer::DrawWithMujoco(const Snapshot& snapshot, std::span<uint8_t> picture) {
  std::copy(snapshot.qpos.begin(), snapshot.qpos.end(), data_->qpos);
  mj_kinematics(scene_.model(), data_.get());
  mj_camlight(scene_.model(), data_.get());
  source_->Render(scene_.model(), data_.get(), picture);
}

void Observer::Disturb() {
  ForEachOnThreads(threads_, disturbed_.size(), [&](size_t k) {
    const Disturbed& it = disturbed_[k];
    const auto picture = std::span(frames_).subspan(k * mjp::kPictureBytes, mjp::kPictureBytes);
    if (!source_) mjp::RasteriseCpu(&it.scene, 1, picture.data());
    DisturbPicture(conditions_, it.seed, it.tick, mjp::kPictureSize, picture);
  });
  disturbed_.clear();
}

mjp::PolicyInput Observer::Input() {
  if (!disturbed_.empty()) Disturb();
  mjp::PolicyInput input;
  input.count = static_cast<int>(keys_.size());
  input.keys = keys_;
  input.scenes = mjp::SceneBytes(scenes_);
  input.frames = frames_;
  input.state = state_;
  input.environment = environment_;
  return input;
}

}  // namespace mjp::app

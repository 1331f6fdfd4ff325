#include "apps/bench/picture_history.h"

#include <algorithm>

#include "base/error.h"
#include "tasks/pusht/physics/reset.h"

namespace mjp::app {

BenchPictureHistory::BenchPictureHistory(const mjp::PolicyConfig& config, int count,
                                         int cuda_device)
    : model_(LoadModel(ModelPath("pusht.xml"))),
      data_(MakeData(model_.get())),
      scene_(model_.get()),
      count_(count),
      steps_(config.n_obs_steps) {
  if (config.cameras.size() != 1)
    throw mjp::BadInput("renderer \"mujoco\" draws Push-T for one camera; this network has " +
                        std::to_string(config.cameras.size()));
  mjp::PictureRequest request;
  request.cameras = {"top"};
  request.width = config.cameras[0].width, request.height = config.cameras[0].height;
  request.cuda_device = cuda_device;
  source_ = mjp::CreatePictureSource("mujoco", model_.get(), request);
  picture_bytes_ = size_t{3} * request.width * request.height;
  mj_forward(model_.get(), data_.get());
  const std::shared_ptr<const mjp::GpuPicture> first =
      source_->RenderOnGpu(model_.get(), data_.get());
  on_gpu_ = first != nullptr;
  frames_.resize(on_gpu_ ? 0 : count_ * steps_ * picture_bytes_);
  gpu_pictures_.resize(on_gpu_ ? count_ * steps_ : 0, first);
}

void BenchPictureHistory::Show(mjp::PolicyInput& input) const {
  input.scenes = {};
  input.frames = frames_;
  input.gpu_pictures = gpu_pictures_;
}

void BenchPictureHistory::Draw() {
  const size_t history = steps_ * picture_bytes_;
  for (size_t i = 0; i < count_; ++i) {
    scene_.ToQpos(BenchmarkStart(drawn_++), data_->qpos);
    mj_kinematics(model_.get(), data_.get());
    mj_camlight(model_.get(), data_.get());
    if (on_gpu_) {
      const auto begin = gpu_pictures_.begin() + i * steps_, end = begin + steps_;
      std::move(begin + 1, end, begin);
      *(end - 1) = source_->RenderOnGpu(model_.get(), data_.get());
      continue;
    }
    const auto begin = frames_.begin() + i * history, end = begin + history;
    std::copy(begin + picture_bytes_, end, begin);
    source_->Render(model_.get(), data_.get(), {&*(end - picture_bytes_), picture_bytes_});
  }
}

}  // namespace mjp::app

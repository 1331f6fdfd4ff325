#include "policy/cuda/decision/conditioning.h"

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/sampler/conditioning.cuh"

namespace mjp {

void Conditioning::Plan(DeviceArena& arena) {
  const size_t size = size_t{1} * environments_ * config_.CondDim();
  cond_ = arena.Take<float>(size);
  given_ = arena.Take<float>(size);
}

void Conditioning::Enqueue(const InputBlock& input, const PictureEncoders& pictures,
                           const FilmConditioning& film, cudaStream_t stream) const {
  ConditioningArgs a;
  a.environments = environments_;
  a.steps = config_.n_obs_steps;
  a.state_dim = config_.state_dim;
  a.environment_dim = config_.environment_dim;
  a.image_first = config_.cond_order == CondOrder::kImageState;
  a.state = input.device().state;
  a.environment = input.device().environment;
  if (pictures.parts() > 0) {
    a.feature_dim = pictures.width();
    a.feature_parts = pictures.parts();
    a.features = pictures.features();
    a.part_stride = pictures.part_stride();
  }
  a.given = given_;
  a.use_given = &input.device().flags->use_given_cond;
  a.cond = cond_;
  a.mish = film.input();
  a.mish_pitch = PaddedChannels(config_.CondDim());
  LaunchConditioning(format_, a, stream);
  film.Run(stream);
}

void Conditioning::UploadGiven(std::span<const float> cond, DeviceArena& arena) const {
  arena.Upload(given_, cond.data(), cond.size_bytes());
}

void Conditioning::Fetch(std::span<float> cond, cudaStream_t stream) const {
  CheckCuda(cudaMemcpyAsync(cond.data(), cond_, cond.size_bytes(), cudaMemcpyDeviceToHost, stream),
            "copy of the conditioning");
}

}  // namespace mjp

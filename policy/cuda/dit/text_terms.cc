#include "policy/cuda/dit/text_terms.h"

#include <algorithm>

#include "kernels/cuda/sampler/conditioning.cuh"

namespace mjp {

TextTerms::TextTerms(const DeviceDit& weights, const DitConfig& config, Format format,
                     int environments, DeviceArena& arena)
    : config_(config), format_(format), environments_(environments) {
  const size_t values = size_t{1} * environments * config.n_obs_steps * config.TextDim();
  device_features_ = arena.Take<float>(values);
  scratch_ = arena.Take<float>(values);
  zero_ = arena.Take<int>(1);
  product_.shape = weights.text_condition.shape;
  product_.shape.batch = environments;
  product_.weight = weights.text_condition.weight;
  activated_ =
      arena.TakeBytes(size_t{1} * environments * product_.shape.in_c * FormatBytes(format));
  product_.x = activated_;
  product_.y = arena.Take<float>(size_t{1} * environments * product_.shape.out_c);
  product_.y_fp32 = true;
}

void TextTerms::Set(std::span<const float> features, const DeviceArena& arena,
                    cudaStream_t stream) {
  if (std::ranges::equal(features, features_)) return;
  features_.clear();  // until their terms are enqueued: a call may fail
  arena.Upload(device_features_, features.data(), features.size_bytes());
  ConditioningArgs a;
  a.environments = environments_;
  a.steps = config_.n_obs_steps;
  a.environment_dim = config_.TextDim();
  a.environment = device_features_;
  a.use_given = zero_;
  a.cond = scratch_;
  a.mish = activated_;
  a.mish_pitch = product_.shape.in_c;
  a.silu = true;
  LaunchConditioning(format_, a, stream);
  LaunchConv(format_, product_, stream);
  features_.assign(features.begin(), features.end());
}

void TextTerms::SetFromConditioning(std::span<const float> cond, const DeviceArena& arena,
                                    cudaStream_t stream) {
  const size_t step = config_.StepDim(), text = config_.TextDim();
  std::vector<float> features;
  for (size_t end = step; end <= cond.size(); end += step)
    features.insert(features.end(), cond.begin() + static_cast<ptrdiff_t>(end - text),
                    cond.begin() + static_cast<ptrdiff_t>(end));
  Set(features, arena, stream);
}

}  // namespace mjp

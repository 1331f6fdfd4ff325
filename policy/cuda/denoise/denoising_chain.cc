#include "policy/cuda/denoise/denoising_chain.h"

#include <algorithm>
#include <utility>

namespace mjp {

DenoisingChain::DenoisingChain(const PolicyConfig& config, std::vector<DenoiseStep> chain_steps,
                               const PolicyOptions& options, Format number_format)
    : format(number_format),
      environments(options.batch),
      horizon(config.horizon),
      action_dim(config.action_dim),
      window(std::max(1, options.sampler.parallel_window)),
      tolerance(options.sampler.parallel_tolerance),
      steps(std::move(chain_steps)),
      noisy_(options.sampler.kind == SamplerKind::kDdpm),
      held_(options.sampler.prefix
                ? std::make_unique<HeldPrefixOnDevice>(options.sampler.warm_start > 0)
                : nullptr),
      noiseless_(config.trained_prefix),
      warm_start_(options.sampler.warm_start),
      temperature_(*options.sampler.temperature) {}

void DenoisingChain::Plan(DeviceArena& arena) {
  const size_t elements = size_t{1} * environments * Elements();
  x = arena.Take<float>(elements);
  noise = noisy_ ? arena.Take<float>(elements * steps.size()) : nullptr;
  timesteps = arena.Take<int>(steps.size());
  schedule = arena.Take<DenoiseStep>(steps.size());
  row_step = arena.Take<int>(size_t{1} * environments * (window > 1 ? window : steps.size()));
  if (held_) held_->Plan(environments, Elements(), x, arena);
}

void DenoisingChain::UploadSchedule(DeviceArena& arena) const {
  std::vector<int> of_steps, of_rows;
  for (const DenoiseStep& step : steps) {
    of_steps.push_back(step.timestep);
    of_rows.insert(of_rows.end(), environments, step.timestep);
  }
  arena.Upload(timesteps, of_steps.data(), of_steps.size() * sizeof(int));
  arena.Upload(schedule, steps.data(), steps.size() * sizeof(DenoiseStep));
  if (window == 1) arena.Upload(row_step, of_rows.data(), of_rows.size() * sizeof(int));
}

void DenoisingChain::EnqueueNoise(const InputBlock& input, cudaStream_t stream) const {
  NoiseArgs a;
  a.environments = environments;
  a.elements = Elements();
  a.steps = Steps();
  a.temperature = temperature_;
  a.timesteps = timesteps;
  a.keys = input.device().keys;
  a.keep = input.device().flags->keep;
  a.start = x;
  a.noise = noise;
  LaunchNoise(a, stream);
  if (held_) held_->Upload(stream);
}

void DenoisingChain::WriteHeld(const Checkpoint& checkpoint, const PolicyInput& input) {
  if (held_) held_->Write(checkpoint, input);
}

void DenoisingChain::EnqueueHeld(int step, cudaStream_t stream) const {
  if (!held_) return;
  if (step > 0 && step == warm_start_ && step < Steps()) held_->EnqueuePlan(steps[step], stream);
  held_->Enqueue(step < Steps() && !noiseless_ ? &steps[step] : nullptr, stream);
}

void DenoisingChain::UploadGiven(const PolicyInput& input, DeviceArena& arena) const {
  arena.Upload(x, input.x_start.data(), input.x_start.size_bytes());
  if (input.noise_by_t.empty() || noise == nullptr) return;
  const size_t given = size_t{1} * input.count * Elements();
  for (size_t k = 0; k < steps.size(); ++k)
    arena.Upload(noise + k * environments * Elements(),
                 input.noise_by_t.data() + steps[k].timestep * given, given * sizeof(float));
}

}  // namespace mjp

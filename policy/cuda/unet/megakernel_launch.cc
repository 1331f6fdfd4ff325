#include "policy/cuda/unet/megakernel_launch.h"

namespace mjp {

MegakernelLaunch::MegakernelLaunch(const NormConvUnet& unet, Format format, int horizon,
                                   const ExecutionPlan& plan, DeviceArena& arena)
    : MegakernelLaunch(unet, format, horizon, *plan.launch, plan.rows, nullptr, arena) {
  launches_ = plan.Launches();
  if (plan.last_launch)
    remainder_.reset(
        new MegakernelLaunch(unet, format, horizon, *plan.last_launch, plan.rows, this, arena));
}

MegakernelLaunch::MegakernelLaunch(const NormConvUnet& unet, Format format, int horizon,
                                   const MegakernelPlan& plan, int all_rows,
                                   const MegakernelLaunch* first, DeviceArena& arena)
    : format_(format),
      arena_(arena),
      conditioning_(first
                        ? first->conditioning_.Shared(plan.rows_per_env)
                        : FilmConditioning(unet.film, format, all_rows, plan.rows_per_env, arena)),
      timed_out_(first || arena.measuring() ? 0 : 1),
      args_(PlaceArgs(unet, horizon, plan, all_rows, first)),
      layers_(unet, format, plan, arena, first ? &first->layers_ : nullptr) {}

megakernel::CommonArgs MegakernelLaunch::PlaceArgs(const NormConvUnet& unet, int horizon,
                                                   const MegakernelPlan& plan, int all_rows,
                                                   const MegakernelLaunch* first) const {
  megakernel::CommonArgs a = MegakernelSizes(unet, horizon, plan.rows, plan.rows_per_env);
  a.all_rows = all_rows;
  a.first.weight = unet.first.weight, a.first.shortcut_weight = unet.first.shortcut_weight;
  a.film = conditioning_.Tables();
  a.head = {unet.head.weight, unet.head.bias};
  const size_t elements = static_cast<size_t>(horizon) * a.action_dim;
  a.head_partial_sums =
      arena_.Take<float>(plan.rows * elements * (a.last_channels / a.last_group_channels));
  a.output = first ? first->args_.output : arena_.Take<float>(all_rows * elements);
  a.pass_count = arena_.Take<uint32_t>(1);
  a.timed_out = first ? first->args_.timed_out : timed_out_.data();
  return a;
}

void MegakernelLaunch::RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin,
                                int end, const TimestampList& timestamps,
                                cudaStream_t stream) const {
  const int count = launches();
  for (int i = 0; i < count; ++i) {
    const MegakernelLaunch& launch = remainder_ && i + 1 == count ? *remainder_ : *this;
    const size_t first = static_cast<size_t>(i) * rows(),
                 at = first * args_.length * args_.action_dim;
    megakernel::CommonArgs a = launch.args_;
    // the kernel's first timestamp here is that of its step `begin`
    a.timestamps = timestamps.After(begin * (count - 1) + i * (end - begin));
    a.schedule = steps;
    a.noise = noise ? noise + at : nullptr;
    a.x = x + at;
    a.output += at;
    a.film.cond += first * a.film.width;
    a.begin = begin, a.end = end;
    launch.layers_.Launch(a, stream);
  }
}

std::unique_ptr<MegakernelLaunch> MegakernelLaunch::Fallback(const NormConvUnet& unet,
                                                             const MegakernelPlan& plan) const {
  return std::unique_ptr<MegakernelLaunch>(
      new MegakernelLaunch(unet, format_, args_.length, plan, plan.rows, this, arena_));
}

void MegakernelLaunch::RunFallback(const PicardSweepArgs& picard, const TimestampList& timestamps,
                                   cudaStream_t stream) const {
  megakernel::CommonArgs a = args_;
  a.timestamps = timestamps.After(0);
  a.picard = picard;
  a.picard.window = 0;
  a.schedule = picard.schedule;
  a.noise = picard.noise;
  a.x = picard.x;
  a.begin = 0, a.end = picard.steps;
  layers_.Launch(a, stream);
}

void MegakernelLaunch::RunWindows(const PicardSweepArgs& picard, const TimestampList& timestamps,
                                  cudaStream_t stream) const {
  megakernel::CommonArgs a = args_;
  a.timestamps = timestamps.After(0);
  a.picard = picard;
  a.schedule = picard.schedule;
  a.x = picard.x;
  layers_.Launch(a, stream);
}

}  // namespace mjp

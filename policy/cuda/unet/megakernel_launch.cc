#include "policy/cuda/unet/megakernel_launch.h"

#include <algorithm>

namespace mjp {

MegakernelLaunch::MegakernelLaunch(const NormConvUnet& unet, Format format, int horizon,
                                   const ExecutionPlan& plan, DeviceArena& arena)
    : MegakernelLaunch(unet, format, horizon,
                       {plan.rows_per_launch, plan.rows, std::max(1, plan.window)}, plan.form,
                       plan.target, nullptr, arena) {
  launches_ = plan.Launches(), fallback_form_ = plan.fallback;
  if (plan.rows % rows() == 0) return;
  remainder_.reset(new MegakernelLaunch(unet, format, horizon, {plan.rows % rows(), plan.rows, 1},
                                        plan.form, plan.target, this, arena));
}

MegakernelLaunch::MegakernelLaunch(const NormConvUnet& unet, Format format, int horizon,
                                   const Rows& rows, UnetForm form,
                                   const megakernel::Target& target, const MegakernelLaunch* first,
                                   DeviceArena& arena)
    : format_(format),
      fallback_form_(form),
      target_(target),
      arena_(arena),
      conditioning_(first ? first->conditioning_.Shared(rows.per_env)
                          : FilmConditioning(unet.film, format, rows.all, rows.per_env, arena)),
      args_(PlaceArgs(unet, horizon, rows, first)),
      layers_(unet, format, horizon, rows.launch, form, target, arena,
              first ? &first->layers_ : nullptr) {
  if (layers_.Supported()) layers_.PlaceInShared(args_);
}

megakernel::CommonArgs MegakernelLaunch::PlaceArgs(const NormConvUnet& unet, int horizon,
                                                   const Rows& rows,
                                                   const MegakernelLaunch* first) const {
  megakernel::CommonArgs a = MegakernelSizes(unet, horizon, rows.launch, rows.per_env);
  a.all_rows = rows.all;
  a.first.weight = unet.first.weight, a.first.shortcut_weight = unet.first.shortcut_weight;
  a.film = conditioning_.Tables();
  a.head = {unet.head.weight, unet.head.bias};
  const size_t elements = static_cast<size_t>(horizon) * a.action_dim;
  a.head_partial_sums =
      arena_.Take<float>(rows.launch * elements * (a.last_channels / a.last_group_channels));
  a.output = first ? first->args_.output : arena_.Take<float>(rows.all * elements);
  a.pass_count = arena_.Take<uint32_t>(1);
  a.timed_out = first ? first->args_.timed_out : arena_.Take<int>(1);
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

std::unique_ptr<MegakernelLaunch> MegakernelLaunch::Fallback(const NormConvUnet& unet) const {
  const int environments = rows() / args_.picard.window;
  return std::unique_ptr<MegakernelLaunch>(
      new MegakernelLaunch(unet, format_, args_.length, {environments, environments, 1},
                           fallback_form_, target_, this, arena_));
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

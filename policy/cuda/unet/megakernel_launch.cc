#include "policy/cuda/unet/megakernel_launch.h"

#include <algorithm>

namespace mjp {

MegakernelLaunch::MegakernelLaunch(const NormConvUnet& unet, Format format, int horizon,
                                   const ExecutionPlan& plan, DeviceArena& arena)
    : MegakernelLaunch(unet, format, horizon, plan.form,
                       {plan.rows_per_launch, plan.rows, std::max(1, plan.window)}, nullptr,
                       arena) {
  if (plan.rows % rows_ == 0) return;
  remainder_.reset(new MegakernelLaunch(unet, format, horizon, plan.form,
                                        {plan.rows % rows_, plan.rows, 1}, this, arena));
}

std::unique_ptr<const MegakernelLaunch> MegakernelLaunch::Measured(const NormConvUnet& unet,
                                                                   Format format, int horizon,
                                                                   UnetForm form, int rows,
                                                                   int all_rows, int rows_per_env,
                                                                   DeviceArena& measuring) {
  return std::unique_ptr<const MegakernelLaunch>(new MegakernelLaunch(
      unet, format, horizon, form, {rows, all_rows, rows_per_env}, nullptr, measuring));
}

LaunchNeeds MegakernelLaunch::Needs(const NormConvUnet& unet, Format format, int horizon,
                                    UnetForm form, int rows, int all_rows, int rows_per_env) {
  DeviceArena measuring;
  const auto launch =
      Measured(unet, format, horizon, form, rows, all_rows, rows_per_env, measuring);
  return {launch->Supported(), launch->LayersSupported(), launch->warp_specialized(),
          launch->ctas(), launch->shared_bytes()};
}

MegakernelLaunch::MegakernelLaunch(const NormConvUnet& unet, Format format, int horizon,
                                   UnetForm form, const Rows& rows, const MegakernelLaunch* first,
                                   DeviceArena& arena)
    : format_(format),
      rows_(rows.launch),
      owner_epilogue_(form != UnetForm::kReaderEpilogue),
      arena_(arena),
      conditioning_(first ? first->conditioning_.Shared(rows.per_env)
                          : FilmConditioning(unet.film, format, rows.all, rows.per_env, arena)) {
  args_.rows = rows.launch;
  args_.all_rows = rows.all;
  args_.length = horizon;
  args_.action_dim = unet.head.out_c;
  args_.first = {unet.first.taps, unet.first.in_c, unet.first.out_c, unet.first.weight,
                 unet.first.shortcut_weight};
  args_.x_halo = unet.first.taps / 2 * unet.first.in_c;
  args_.film = conditioning_.Tables();
  args_.head = {unet.head.weight, unet.head.bias};
  const size_t elements = static_cast<size_t>(horizon) * args_.action_dim;
  args_.head_partial_sums = arena.Take<float>(rows_ * elements * unet.final_norm.groups);
  args_.output = first ? first->args_.output : arena.Take<float>(rows.all * elements);
  args_.pass_count = arena.Take<uint32_t>(1);
  args_.timed_out = first ? first->args_.timed_out : arena.Take<int>(1);
  args_.picard.window = rows.per_env > 1 ? rows.per_env : 0;
  if (IsMegakernel(form)) {
    PlanMegakernel(unet, first);
    return;
  }
  PlanReaderEpilogue(unet);
}

void MegakernelLaunch::PlanMegakernel(const NormConvUnet& unet, const MegakernelLaunch* first) {
  layers_ = std::make_unique<MegakernelLayers>(unet, format_, args_.length, rows_, arena_,
                                               first ? first->layers_.get() : nullptr);
  args_.last = layers_->last();
  ctas_ = megakernel::kCtas;
  if (layers_->Supported()) shared_bytes_ = layers_->SharedBytes(args_);
}

bool MegakernelLaunch::Supported() const {
  if (!supported_ || (layers_ && !layers_->Supported())) return false;
  const int groups = args_.last.channels / args_.last.group_channels;
  return args_.first.shortcut_weight != nullptr && groups <= megakernel::kMaxPartialSums &&
         (args_.picard.window == 0 || args_.length * args_.action_dim % 4 == 0) &&
         (owner_epilogue_ || rows_ * groups <= ctas_);
}

void MegakernelLaunch::Launch(const megakernel::CommonArgs& a, cudaStream_t stream) const {
  if (layers_) return layers_->Launch(a, shared_bytes_, stream);
  megakernel::ReaderArgs reader = reader_;
  reader.common = a;
  megakernel::LaunchReaderMegakernel(format_, reader, ctas_, shared_bytes_, stream);
}

void MegakernelLaunch::RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin,
                                int end, const TimestampList& timestamps,
                                cudaStream_t stream) const {
  const int count = launches();
  for (int i = 0; i < count; ++i) {
    const MegakernelLaunch& plan = remainder_ && i + 1 == count ? *remainder_ : *this;
    const size_t first = static_cast<size_t>(i) * rows_,
                 at = first * args_.length * args_.action_dim;
    megakernel::CommonArgs a = plan.args_;
    // the kernel's first timestamp here is that of its step `begin`
    a.timestamps = timestamps.After(begin * (count - 1) + i * (end - begin));
    a.schedule = steps;
    a.noise = noise ? noise + at : nullptr;
    a.x = x + at;
    a.output += at;
    a.film.cond += first * a.film.width;
    a.begin = begin, a.end = end;
    plan.Launch(a, stream);
  }
}

std::unique_ptr<MegakernelLaunch> MegakernelLaunch::Fallback(const NormConvUnet& unet,
                                                             UnetForm form) const {
  const int environments = rows_ / args_.picard.window;
  return std::unique_ptr<MegakernelLaunch>(new MegakernelLaunch(
      unet, format_, args_.length, form, {environments, environments, 1}, this, arena_));
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
  Launch(a, stream);
}

void MegakernelLaunch::RunWindows(const PicardSweepArgs& picard, const TimestampList& timestamps,
                                  cudaStream_t stream) const {
  megakernel::CommonArgs a = args_;
  a.timestamps = timestamps.After(0);
  a.picard = picard;
  a.schedule = picard.schedule;
  a.x = picard.x;
  Launch(a, stream);
}

}  // namespace mjp

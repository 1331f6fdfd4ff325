#include "policy/cuda/unet/megakernel_denoiser.h"

#include <algorithm>

#include "kernels/cuda/conv/implicit_gemm_wgmma.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"

namespace mjp {
namespace {

void SetNorm(megakernel::EpilogueSource& source, const DeviceNorm& norm) {
  source.norm_scale = norm.weight;
  source.norm_shift = norm.bias;
  source.group_channels = source.channels / norm.groups;
}

}  // namespace

MegakernelDenoiser::MegakernelDenoiser(const NormConvUnet& unet, Format format, int horizon,
                                       const ExecutionPlan& plan, DeviceArena& arena)
    : MegakernelDenoiser(unet, format, horizon, plan.form,
                         {plan.rows_per_launch, plan.rows, std::max(1, plan.window)}, nullptr,
                         arena) {
  if (plan.rows % rows_ == 0) return;
  remainder_.reset(new MegakernelDenoiser(unet, format, horizon, plan.form,
                                          {plan.rows % rows_, plan.rows, 1}, this, arena));
}

std::unique_ptr<const MegakernelDenoiser> MegakernelDenoiser::Measured(
    const NormConvUnet& unet, Format format, int horizon, UnetForm form, int rows, int all_rows,
    int rows_per_env, DeviceArena& measuring) {
  return std::unique_ptr<const MegakernelDenoiser>(new MegakernelDenoiser(
      unet, format, horizon, form, {rows, all_rows, rows_per_env}, nullptr, measuring));
}

MegakernelDenoiser::MegakernelDenoiser(const NormConvUnet& unet, Format format, int horizon,
                                       UnetForm form, const Rows& rows,
                                       const MegakernelDenoiser* first, DeviceArena& arena)
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

void MegakernelDenoiser::PlanMegakernel(const NormConvUnet& unet, const MegakernelDenoiser* first) {
  layers_ = std::make_unique<MegakernelLayers>(unet, format_, args_.length, rows_, arena_,
                                               first ? first->layers_.get() : nullptr);
  args_.last = layers_->last();
  ctas_ = megakernel::kCtas;
  if (layers_->Supported()) shared_bytes_ = layers_->SharedBytes(args_);
}

void MegakernelDenoiser::PlanReaderEpilogue(const NormConvUnet& unet) {
  reader_.two_tiles_per_warp = owner_epilogue_;
  Value x = LowerUnet(
      unet.steps, Value{{}, args_.length},
      [&](const NormConvBlock& block, const UnetPlace&, Value& in, Value* skip) {
        return block.conv1.shape.in_c == 0 ? FirstBlock(block, unet.first, in.length)
                                           : Block(block, in, skip);
      },
      [&](const DeviceNormConv& conv, const UnetPlace&, Value& in) { return Resample(conv, in); });
  megakernel::ReaderLayer final_conv = Convolve(unet.final_conv, args_.length, args_.length);
  final_conv.source[0] = Consume(x);
  Value last = {DeferredEpilogue(unet.final_conv), args_.length};
  SetNorm(last.source, unet.final_norm);
  Append(final_conv, last, false);
  args_.last = last.source;
  megakernel::ReaderLayer* layers = arena_.Take<megakernel::ReaderLayer>(reader_layers_.size());
  arena_.Upload(layers, reader_layers_.data(),
                reader_layers_.size() * sizeof(megakernel::ReaderLayer));
  reader_.layers = layers;
  for (const megakernel::ReaderLayer& s : reader_layers_) {
    ctas_ = std::max(ctas_,
                     s.shape.out_c * s.shape.phases / s.m_channels * s.split_k * (rows_ / s.rows));
  }
  reader_.common = args_;
  shared_bytes_ = megakernel::PlanReaderShared(reader_layers_, reader_);
}

float* MegakernelDenoiser::TakeTagged(int split_k, int length, int channels) {
  return arena_.Take<float>(static_cast<size_t>(rows_) * split_k * length * channels);
}

megakernel::ReaderLayer MegakernelDenoiser::Convolve(const DeviceNormConv& conv, int in_length,
                                                     int out_length) {
  megakernel::ReaderLayer s;
  s.shape = conv.shape;
  s.shape.rows = rows_;
  s.shape.in_length = in_length;
  s.shape.out_length = out_length;
  s.weight = conv.weight;
  return s;
}

// The epilogue of `conv`'s output; its partial sums follow with the plan of the layer.
megakernel::EpilogueSource MegakernelDenoiser::DeferredEpilogue(const DeviceNormConv& conv) {
  megakernel::EpilogueSource s;
  s.bias = conv.bias;
  s.channels = conv.shape.out_c;
  s.group_channels = std::max(4, s.channels / 8);
  return s;
}

megakernel::EpilogueSource MegakernelDenoiser::Consume(Value& value) const {
  const megakernel::EpilogueSource source = value.source;
  if (source.materialized != nullptr) {
    value.source = {};
    value.source.values = source.materialized;
    value.source.channels = source.channels;
  }
  return source;
}

// Plans the layer and takes the memory of its partial sums; materialises `output` where owners do.
void MegakernelDenoiser::Append(megakernel::ReaderLayer& layer, Value& output, bool materialize) {
  const NormConvShape& shape = layer.shape;
  const int length = shape.out_length * shape.phases;
  layer.own = materialize && owner_epilogue_ ? output.source : megakernel::EpilogueSource{};
  if (!megakernel::PlanReaderLayer(layer, owner_epilogue_)) {
    supported_ = false;
    return;
  }
  layer.partial_sums = TakeTagged(layer.split_k, length, shape.out_c);
  if (shape.shortcut) layer.shortcut_partial_sums = TakeTagged(layer.split_k, length, shape.out_c);
  output.source.values = layer.partial_sums;
  output.source.split_k = layer.split_k;
  if (materialize && owner_epilogue_) {
    layer.own = output.source;
    if (layer.own.materialized == nullptr)
      layer.own.materialized = TakeTagged(1, length, shape.out_c);
    output.source = {};
    output.source.values = layer.own.materialized;
    output.source.channels = layer.own.channels;
  }
  reader_layers_.push_back(layer);
}

MegakernelDenoiser::Value MegakernelDenoiser::SecondHalf(
    const NormConvBlock& block, Value& hidden, const megakernel::EpilogueSource& residual) {
  const int length = hidden.length;
  megakernel::ReaderLayer conv2 = Convolve(block.conv2, length, length);
  conv2.source[0] = hidden.source;
  Value out = {DeferredEpilogue(block.conv2), length};
  SetNorm(out.source, block.norm2);
  out.source.residual = residual.values;
  out.source.shortcut_bias = residual.bias;
  out.source.residual_split_k = residual.split_k;
  out.source.shortcut_of_x = residual.values == nullptr;
  out.source.materialized = TakeTagged(1, length, out.source.channels);
  Append(conv2, out, true);
  return out;
}

MegakernelDenoiser::Value MegakernelDenoiser::Block(const NormConvBlock& block, Value& x,
                                                    Value* skip) {
  megakernel::ReaderLayer conv1 = Convolve(block.conv1, x.length, x.length);
  conv1.source[0] = Consume(x);
  if (skip != nullptr) conv1.source[1] = Consume(*skip);
  // after Consume, x is materialised wherever the identity needs it
  if (!block.conv1.shape.shortcut && (skip != nullptr || x.source.bias != nullptr))
    supported_ = false;
  Value hidden = {DeferredEpilogue(block.conv1), x.length};
  SetNorm(hidden.source, block.norm1);
  hidden.source.film_scale = block.film.scale_offset;
  hidden.source.film_bias = block.film.bias_offset;
  Append(conv1, hidden, true);
  megakernel::EpilogueSource residual = x.source;
  if (block.conv1.shape.shortcut && !reader_layers_.empty()) {
    residual = {};
    residual.values = reader_layers_.back().shortcut_partial_sums;
    residual.bias = block.conv1.shortcut_bias;
    residual.split_k = reader_layers_.back().split_k;
  }
  return SecondHalf(block, hidden, residual);
}

MegakernelDenoiser::Value MegakernelDenoiser::FirstBlock(const NormConvBlock& block,
                                                         const FirstConvArgs& conv, int horizon) {
  Value hidden;
  hidden.length = horizon;
  megakernel::EpilogueSource& s = hidden.source;
  s.bias = conv.bias;
  s.channels = conv.out_c;
  SetNorm(s, block.norm1);
  s.film_scale = block.film.scale_offset;
  s.film_bias = block.film.bias_offset;
  megakernel::EpilogueSource residual;
  residual.bias = conv.shortcut_bias;
  return SecondHalf(block, hidden, residual);
}

MegakernelDenoiser::Value MegakernelDenoiser::Resample(const DeviceNormConv& conv, Value& x) {
  const bool up = conv.shape.phases == 2;
  megakernel::ReaderLayer layer = Convolve(conv, x.length, up ? x.length : x.length / 2);
  layer.source[0] = Consume(x);
  Value out = {DeferredEpilogue(conv), up ? x.length * 2 : x.length / 2};
  Append(layer, out, true);
  return out;
}

bool MegakernelDenoiser::Supported() const {
  if (!supported_ || (layers_ && !layers_->Supported())) return false;
  const int groups = args_.last.channels / args_.last.group_channels;
  return args_.first.shortcut_weight != nullptr && groups <= megakernel::kMaxPartialSums &&
         (args_.picard.window == 0 || args_.length * args_.action_dim % 4 == 0) &&
         (owner_epilogue_ || rows_ * groups <= ctas_);
}

void MegakernelDenoiser::Launch(const megakernel::CommonArgs& a, cudaStream_t stream) const {
  if (layers_) return layers_->Launch(a, shared_bytes_, stream);
  megakernel::ReaderArgs reader = reader_;
  reader.common = a;
  megakernel::LaunchReaderMegakernel(format_, reader, ctas_, shared_bytes_, stream);
}

void MegakernelDenoiser::RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin,
                                  int end, const TimestampList& timestamps,
                                  cudaStream_t stream) const {
  const int count = launches();
  for (int i = 0; i < count; ++i) {
    const MegakernelDenoiser& plan = remainder_ && i + 1 == count ? *remainder_ : *this;
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

std::unique_ptr<MegakernelDenoiser> MegakernelDenoiser::Fallback(const NormConvUnet& unet,
                                                                 UnetForm form) const {
  const int environments = rows_ / args_.picard.window;
  return std::unique_ptr<MegakernelDenoiser>(new MegakernelDenoiser(
      unet, format_, args_.length, form, {environments, environments, 1}, this, arena_));
}

void MegakernelDenoiser::RunFallback(const PicardSweepArgs& picard, const TimestampList& timestamps,
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

void MegakernelDenoiser::RunWindows(const PicardSweepArgs& picard, const TimestampList& timestamps,
                                    cudaStream_t stream) const {
  megakernel::CommonArgs a = args_;
  a.timestamps = timestamps.After(0);
  a.picard = picard;
  a.schedule = picard.schedule;
  a.x = picard.x;
  Launch(a, stream);
}

}  // namespace mjp

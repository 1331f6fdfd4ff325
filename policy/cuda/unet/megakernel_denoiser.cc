#include "policy/cuda/unet/megakernel_denoiser.h"

#include <algorithm>

#include "kernels/cuda/conv/implicit_gemm_wgmma.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"

namespace mjp {
namespace {

// Up to here every reader finishes what it needs: a layer costs one exchange between blocks.
// Beyond, the blocks share the finishing: two exchanges, but each number is finished once, which
// takes less at any number of rows where some threads do nothing else.
constexpr int kMostSharedRows = 2;

// Positions of the deepest level from which on a launch per layer has
// kernels/cuda/conv/implicit_gemm_wgmma.cu for all of them, and takes no longer than several
// launches of the chain do (`mjpolicy bench pass`).
constexpr int kManyPositions = 512;

void SetNorm(ChainSource& source, const DeviceNorm& norm) {
  source.norm_scale = norm.weight;
  source.norm_shift = norm.bias;
  source.item_channels = source.channels / norm.groups;
}

// The stamps of `list` behind the first `count`.
StampList Behind(const StampList& list, int count) {
  if (list.capacity <= count) return {};
  return {list.times + count, list.count, list.capacity - count};
}

}  // namespace

const ChainDevice& ChainDevice::Current() {
  static const ChainDevice device = [] {
    const GpuTraits& gpu = GpuTraits::Current();
    const bool shared = gpu.shared_bytes >= kFusedMaxSharedBytes;
    return ChainDevice{gpu.DependentLaunch() && gpu.cooperative && shared, gpu.Wgmma(),
                       gpu.multiprocessors};
  }();
  return device;
}

ChainPlan::ChainPlan(const FusedUnet& unet, Format format, int horizon, int rows, int rows_per_env,
                     DeviceArena& arena, const ChainDevice& device)
    : ChainPlan(unet, format, horizon,
                {rows_per_env == 1 ? RowsOfLaunch(unet, format, horizon, rows, device) : rows, rows,
                 rows_per_env},
                nullptr, arena, device) {
  if (rows % rows_ == 0) return;
  last_.reset(new ChainPlan(unet, format, horizon, {rows % rows_, rows, 1}, this, arena, device));
}

int ChainPlan::RowsOfLaunch(const FusedUnet& unet, Format format, int horizon, int rows,
                            const ChainDevice& device) {
  const int halvings = static_cast<int>(unet.up.size());
  for (const int most : {rows, kWideRows, kWideSlots}) {
    if (most > rows || (most < rows && rows * (horizon >> halvings) >= kManyPositions)) continue;
    DeviceArena measuring;
    const ChainPlan plan(unet, format, horizon, {most, rows, 1}, nullptr, measuring, device);
    if (plan.wide_ && plan.Supported()) return most;
  }
  return rows;
}

ChainPlan::ChainPlan(const FusedUnet& unet, Format format, int horizon, const Rows& rows,
                     const ChainPlan* first, DeviceArena& arena, const ChainDevice& device)
    : format_(format),
      device_(device),
      rows_(rows.launch),
      owned_(rows.all > kMostSharedRows || rows.per_env > 1 ||
             horizon * unet.first.out_c / unet.final_norm.groups > kChainReaderNumbers),
      arena_(arena),
      condition_(first ? first->condition_.Shared(rows.per_env)
                       : FilmCondition(unet.film, format, rows.all, rows.per_env, arena)) {
  args_.rows = rows.launch;
  args_.all_rows = rows.all;
  args_.length = horizon;
  args_.action_dim = unet.head.out_c;
  args_.first = unet.first;
  args_.border = unet.first.taps / 2 * unet.first.in_c;
  args_.film = condition_.Terms({});
  args_.head_weight = unet.head.weight;
  args_.head_bias = unet.head.bias;
  const size_t elements = static_cast<size_t>(horizon) * args_.action_dim;
  args_.head_words = arena.Take<float>(rows_ * elements * unet.final_norm.groups);
  args_.output = first ? first->args_.output : arena.Take<float>(rows.all * elements);
  args_.passes = arena.Take<uint32_t>(1);
  args_.stuck = first ? first->args_.stuck : arena.Take<int>(1);
  args_.picard.window = rows.per_env > 1 ? rows.per_env : 0;
  if (PlanWide(unet, first)) return;
  PlanStages(unet);
  shared_bytes_ = PlanChainShared(stages_, args_);
}

// Takes the kernel of up to 32 rows, if it runs the network and nothing else is faster.
bool ChainPlan::PlanWide(const FusedUnet& unet, const ChainPlan* first) {
  if (!device_.wgmma || device_.processors < kWideBlocks || rows_ > kWideRows) return false;
  DeviceArena measuring;
  WideStages plan(unet, format_, args_.length, rows_, measuring);
  ChainArgs args = args_;
  args.last = plan.last();
  if (!plan.Supported() || plan.SharedBytes(args) > size_t{kFusedMaxSharedBytes}) return false;
  if (!owned_ && !plan.Roles()) return false;
  wide_ = std::make_unique<WideStages>(unet, format_, args_.length, rows_, arena_,
                                       first ? first->wide_.get() : nullptr);
  args_.last = wide_->last();
  args_.blocks = kWideBlocks;
  shared_bytes_ = wide_->SharedBytes(args_);
  return true;
}

void ChainPlan::PlanStages(const FusedUnet& unet) {
  args_.wide_warps = owned_;
  std::vector<Signal> skips;
  Signal x;
  for (const FusedLevel1d& level : unet.down) {
    x = skips.empty() ? FirstBlock(level.block1, args_.length) : Block(level.block1, &x, nullptr);
    skips.push_back(Block(level.block2, &x, nullptr));
    x = level.resample.shape.in_c > 0 ? Resample(level.resample, skips.back()) : skips.back();
  }
  // the last level's signal is finished by mid1, which the skip's later reader relies on
  Signal mid = Block(unet.mid1, &x, nullptr);
  skips.back() = x;
  x = Block(unet.mid2, &mid, nullptr);
  for (const FusedLevel1d& level : unet.up) {
    Signal hidden = Block(level.block1, &x, &skips.back());
    skips.pop_back();
    x = Block(level.block2, &hidden, nullptr);
    if (level.resample.shape.in_c > 0) x = Resample(level.resample, x);
  }
  ChainStage final_conv = Convolve(unet.final_conv, args_.length, args_.length);
  final_conv.source[0] = Consume(x);
  Signal last = {Sums(unet.final_conv), args_.length};
  SetNorm(last.source, unet.final_norm);
  Push(final_conv, last, false);
  args_.last = last.source;
  ChainStage* stages = arena_.Take<ChainStage>(stages_.size());
  arena_.Upload(stages, stages_.data(), stages_.size() * sizeof(ChainStage));
  args_.stages = stages;
  args_.stage_count = static_cast<int>(stages_.size());
  for (const ChainStage& s : stages_) {
    args_.blocks = std::max(
        args_.blocks, s.shape.out_c * s.shape.phases / s.m_channels * s.splits * (rows_ / s.rows));
  }
}

float* ChainPlan::TakeWords(int splits, int length, int channels) {
  return arena_.Take<float>(static_cast<size_t>(rows_) * splits * length * channels);
}

ChainStage ChainPlan::Convolve(const DeviceFusedConv& conv, int in_length, int out_length) {
  ChainStage s;
  s.shape = conv.shape;
  s.shape.rows = rows_;
  s.shape.in_length = in_length;
  s.shape.out_length = out_length;
  s.weight = conv.weight;
  return s;
}

// The output of `conv`; its words follow with the plan of the stage.
ChainSource ChainPlan::Sums(const DeviceFusedConv& conv) {
  ChainSource s;
  s.bias = conv.bias;
  s.channels = conv.shape.out_c;
  s.item_channels = std::max(4, s.channels / 8);
  return s;
}

ChainSource ChainPlan::Consume(Signal& signal) const {
  const ChainSource source = signal.source;
  if (source.keep != nullptr) {
    signal.source = {};
    signal.source.words = source.keep;
    signal.source.channels = source.channels;
  }
  return source;
}

// Plans the stage, gives `output` its words, and has it finished at once where blocks do that.
void ChainPlan::Push(ChainStage& stage, Signal& output, bool finish) {
  const FusedConvShape& shape = stage.shape;
  const int length = shape.out_length * shape.phases;
  stage.own = finish && owned_ ? output.source : ChainSource{};
  if (!PlanChainStage(stage, owned_)) {
    supported_ = false;
    return;
  }
  stage.words = TakeWords(stage.splits, length, shape.out_c);
  if (shape.residual) stage.residual_words = TakeWords(stage.splits, length, shape.out_c);
  output.source.words = stage.words;
  output.source.splits = stage.splits;
  if (finish && owned_) {
    stage.own = output.source;
    if (stage.own.keep == nullptr) stage.own.keep = TakeWords(1, length, shape.out_c);
    output.source = {};
    output.source.words = stage.own.keep;
    output.source.channels = stage.own.channels;
  }
  stages_.push_back(stage);
}

ChainPlan::Signal ChainPlan::SecondHalf(const FusedBlock1d& block, Signal& hidden,
                                        const ChainSource& residual) {
  const int length = hidden.length;
  ChainStage conv2 = Convolve(block.conv2, length, length);
  conv2.source[0] = hidden.source;
  Signal out = {Sums(block.conv2), length};
  SetNorm(out.source, block.norm2);
  out.source.residual = residual.words;
  out.source.residual_bias = residual.bias;
  out.source.residual_splits = residual.splits;
  out.source.first_residual = residual.words == nullptr;
  out.source.keep = TakeWords(1, length, out.source.channels);
  Push(conv2, out, true);
  return out;
}

ChainPlan::Signal ChainPlan::Block(const FusedBlock1d& block, Signal* x, Signal* skip) {
  ChainStage conv1 = Convolve(block.conv1, x->length, x->length);
  conv1.source[0] = Consume(*x);
  if (skip != nullptr) conv1.source[1] = Consume(*skip);
  // after Consume, x is finished wherever the identity needs it
  if (!block.conv1.shape.residual && (skip != nullptr || x->source.bias != nullptr))
    supported_ = false;
  Signal hidden = {Sums(block.conv1), x->length};
  SetNorm(hidden.source, block.norm1);
  hidden.source.film_scale = block.film.scale_offset;
  hidden.source.film_bias = block.film.bias_offset;
  Push(conv1, hidden, true);
  ChainSource residual = x->source;
  if (block.conv1.shape.residual && !stages_.empty()) {
    residual = {};
    residual.words = stages_.back().residual_words;
    residual.bias = block.conv1.residual_bias;
    residual.splits = stages_.back().splits;
  }
  return SecondHalf(block, hidden, residual);
}

ChainPlan::Signal ChainPlan::FirstBlock(const FusedBlock1d& block, int horizon) {
  Signal hidden;
  hidden.length = horizon;
  ChainSource& s = hidden.source;
  s.bias = args_.first.bias;
  s.channels = args_.first.out_c;
  SetNorm(s, block.norm1);
  s.film_scale = block.film.scale_offset;
  s.film_bias = block.film.bias_offset;
  ChainSource residual;
  residual.bias = args_.first.residual_bias;
  return SecondHalf(block, hidden, residual);
}

ChainPlan::Signal ChainPlan::Resample(const DeviceFusedConv& conv, Signal& x) {
  const bool up = conv.shape.phases == 2;
  ChainStage stage = Convolve(conv, x.length, up ? x.length : x.length / 2);
  stage.source[0] = Consume(x);
  Signal out = {Sums(conv), up ? x.length * 2 : x.length / 2};
  Push(stage, out, true);
  return out;
}

bool ChainPlan::Supported() const {
  const int groups = args_.last.channels / args_.last.item_channels;
  return supported_ && device_.clusters && device_.processors >= args_.blocks &&
         args_.first.residual_weight != nullptr && groups <= kChainMaxSplits &&
         (args_.picard.window == 0 || args_.length * args_.action_dim % 4 == 0) &&
         (owned_ || rows_ * groups <= args_.blocks) &&
         (wide_ || rows_ * args_.length <= kMostFusedPositions) &&
         shared_bytes_ <= size_t{kFusedMaxSharedBytes} && (!last_ || last_->Supported());
}

void ChainPlan::Launch(const ChainArgs& a, cudaStream_t stream) const {
  if (wide_) return LaunchWideChain(wide_->Args(a, shared_bytes_), shared_bytes_, stream);
  LaunchUnetChain(format_, a, shared_bytes_, stream);
}

void ChainPlan::RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin, int end,
                         const StampList& stamps, cudaStream_t stream) const {
  const int count = launches();
  for (int i = 0; i < count; ++i) {
    const ChainPlan& plan = last_ && i + 1 == count ? *last_ : *this;
    const size_t first = static_cast<size_t>(i) * rows_,
                 at = first * args_.length * args_.action_dim;
    ChainArgs a = plan.args_;
    // the kernel's first stamp here is that of its step `begin`
    a.stamps = Behind(stamps, begin * (count - 1) + i * (end - begin));
    a.schedule = steps;
    a.noise = noise ? noise + at : nullptr;
    a.x = x + at;
    a.output += at;
    a.film.cond += first * a.film.width;
    a.begin = begin, a.end = end;
    plan.Launch(a, stream);
  }
}

bool ChainPlan::Supports(const FusedUnet& unet, Format format, int horizon, int environments,
                         int window, const ChainDevice& device) {
  DeviceArena measuring;
  const ChainPlan plan(unet, format, horizon, environments * window, window, measuring, device);
  return plan.Supported() && (window == 1 || plan.Rest(unet)->Supported());
}

bool ChainPlan::HasRoles(const FusedUnet& unet, Format format, int horizon, int environments,
                         const ChainDevice& device) {
  DeviceArena measuring;
  const ChainPlan plan(unet, format, horizon, environments, 1, measuring, device);
  return plan.Supported() && plan.wide_ && plan.wide_->Roles();
}

// What holds of a checkpoint's U-Net, measured, where it has fused kernels for so many rows.
template <typename Holds>
static bool HoldsMeasured(const Checkpoint& checkpoint, Format format, int rows,
                          const Holds& holds) {
  if (!FusedUnetSupports(checkpoint, format, rows)) return false;
  DeviceArena measuring;
  LayerLoader loader(measuring, format);
  return holds(LoadFusedUnet(loader, checkpoint, true));
}

bool ChainPlan::Supports(const Checkpoint& checkpoint, Format format, int environments,
                         int window) {
  // step by step the rows may be those of several launches
  const int rows = window > 1 ? environments * window : std::min(environments, kWideSlots);
  return HoldsMeasured(checkpoint, format, rows, [&](const FusedUnet& unet) {
    return Supports(unet, format, checkpoint.config.horizon, environments, window);
  });
}

bool ChainPlan::HasRoles(const Checkpoint& checkpoint, Format format, int environments) {
  const int rows = std::min(environments, kWideSlots);
  return HoldsMeasured(checkpoint, format, rows, [&](const FusedUnet& unet) {
    return HasRoles(unet, format, checkpoint.config.horizon, environments);
  });
}

std::unique_ptr<ChainPlan> ChainPlan::Rest(const FusedUnet& unet) const {
  const int environments = rows_ / args_.picard.window;
  return std::unique_ptr<ChainPlan>(new ChainPlan(
      unet, format_, args_.length, {environments, environments, 1}, this, arena_, device_));
}

void ChainPlan::RunRest(const PicardArgs& picard, const StampList& stamps,
                        cudaStream_t stream) const {
  ChainArgs a = args_;
  a.stamps = stamps;
  a.picard = picard;
  a.picard.window = 0;
  a.schedule = picard.schedule;
  a.noise = picard.noise;
  a.x = picard.x;
  a.begin = 0, a.end = picard.steps;
  Launch(a, stream);
}

void ChainPlan::RunWindows(const PicardArgs& picard, const StampList& stamps,
                           cudaStream_t stream) const {
  ChainArgs a = args_;
  a.stamps = stamps;
  a.picard = picard;
  a.schedule = picard.schedule;
  a.x = picard.x;
  Launch(a, stream);
}

}  // namespace mjp

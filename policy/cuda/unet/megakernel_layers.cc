#include "policy/cuda/unet/megakernel_layers.h"

#include <map>
#include <utility>

namespace mjp {

WideStages::WideStages(const FusedUnet& unet, Format format, int horizon, int rows,
                       DeviceArena& arena, const WideStages* packed)
    : arena_(arena), packed_(packed) {
  args_.format = format;
  args_.waves = rows > kWideSlots ? kWideMaxWaves : 1;
  std::vector<Signal> skips;
  Signal x;
  for (const FusedLevel1d& level : unet.down) {
    x = skips.empty() ? FirstBlock(unet, horizon) : Block(level.block1, x, nullptr);
    x = Block(level.block2, x, nullptr);
    skips.push_back(x);
    if (level.resample.shape.in_c > 0) x = Resample(level.resample, x);
  }
  x = Block(unet.mid1, x, nullptr);
  x = Block(unet.mid2, x, nullptr);
  for (const FusedLevel1d& level : unet.up) {
    x = Block(level.block1, x, &skips.back());
    skips.pop_back();
    x = Block(level.block2, x, nullptr);
    if (level.resample.shape.in_c > 0) x = Resample(level.resample, x);
  }
  WideStage last = Convolve(unet.final_conv, x, nullptr, x.length);
  SetNorm(last.own, unet.final_norm);
  last.keep_log2 = 0;
  Push(last, false);
  constexpr int kWarpChannels = 128;
  args_.roles = HaveRoles(stages_);
  if (args_.roles) PlanWhole(stages_);
  supported_ = supported_ && last.own.item_channels <= kWarpChannels && KeepBlocksTogether(stages_);
  supported_ = supported_ && (args_.waves == 1 || args_.roles);
  if (supported_) PlaceFence(stages_), OrderWeights();
  SetLayouts();
  PlaceBoxes(&WideStage::sums);
  PlaceBoxes(&WideStage::beside);
  args_.boxes = arena.Take<float>(box_words_);
  auto* stages = arena.Take<WideStage>(stages_.size());
  arena.Upload(stages, stages_.data(), stages_.size() * sizeof(WideStage));
  args_.stages = stages;
  args_.stage_count = static_cast<int>(stages_.size());
}

// Boxes of one layout follow each other in use.
void WideStages::PlaceBoxes(WideBox WideStage::*box) {
  const auto layout = [&](const WideStage& s) { return std::pair{(s.*box).words, s.splits_log2}; };
  std::map<std::pair<int, int>, int> uses;
  for (WideStage& s : stages_)
    if ((s.*box).words > 0) (s.*box).index = uses[layout(s)]++;
  for (const auto& [key, count] : uses) {
    for (WideStage& s : stages_)
      if (layout(s) == key) (s.*box).uses = count, (s.*box).offset = box_words_;
    box_words_ += 2 * args_.waves * kWideBlocks * key.first;
  }
}

// Finished numbers stand as the first stage that reads them takes them.
void WideStages::SetLayouts() {
  for (WideStage& reader : stages_) {
    for (int i = 0; i < 2; ++i) {
      for (WideStage& writer : stages_) {
        if (reader.source[i] == nullptr || writer.keep != reader.source[i]) continue;
        if (writer.keep_log2 < 0) writer.keep_log2 = reader.rows_log2;
        reader.source_log2[i] = writer.keep_log2;
      }
    }
  }
}

WideChainArgs WideStages::Args(const ChainArgs& chain, size_t shared_bytes) const {
  WideChainArgs args = args_;
  args.chain = chain;
  const WideSpace space = PlanWideSpace(stages_, args, shared_bytes);
  args.sums_offset = space.sums_offset, args.whole_offset = space.whole_offset;
  return args;
}

size_t WideStages::SharedBytes(const ChainArgs& chain) const {
  const size_t most = kFusedMaxSharedBytes;
  return PlanWideSpace(stages_, Args(chain, most), most).bytes;
}

void WideStages::SetNorm(ChainSource& own, const DeviceNorm& norm) {
  supported_ = supported_ && norm.groups == kWideGroups;
  own.norm_scale = norm.weight;
  own.norm_shift = norm.bias;
}

// Those of each stage in the order in which the kernel reads them.
void WideStages::OrderWeights() {
  for (size_t i = 0; i < stages_.size(); ++i) {
    WideStage& s = stages_[i];
    if (s.shape.in_c == 0) continue;
    if (packed_) {
      s.weight = packed_->stages_[i].weight;
      continue;
    }
    void* ordered = arena_.TakeBytes(PackedFusedBytes(Format::kFp16, s.shape));
    if (!arena_.measuring()) LaunchWidePack(s.shape, s.whole, s.weight, ordered);
    s.weight = ordered;
  }
}

WideStage WideStages::Convolve(const DeviceFusedConv& conv, const Signal& x, const Signal* skip,
                               int out_length) {
  WideStage s;
  s.shape = conv.shape;
  s.shape.rows = kWideSlots;
  s.shape.in_length = x.length;
  s.shape.out_length = out_length;
  s.weight = conv.weight;
  s.source[0] = x.finished;
  s.source_channels = x.channels;
  if (skip != nullptr) s.source[1] = skip->finished;
  s.own.bias = conv.bias;
  s.own.residual_bias = conv.residual_bias;
  s.own.channels = conv.shape.out_c;
  return s;
}

WideStages::Signal WideStages::Push(WideStage& stage, bool keep) {
  const FusedConvShape& shape = stage.shape;
  const Signal out = {nullptr, shape.out_c, shape.out_length * shape.phases, stage.add};
  supported_ = supported_ && PlanWideStage(stage);
  if (keep)
    stage.keep =
        arena_.Take<uint16_t>(size_t{2} * args_.waves * shape.rows * out.channels * out.length);
  stages_.push_back(stage);
  Signal kept = out;
  kept.finished = stage.keep;
  return kept;
}

WideStages::Signal WideStages::SecondHalf(const FusedBlock1d& block, const Signal& hidden) {
  WideStage conv2 = Convolve(block.conv2, hidden, nullptr, hidden.length);
  SetNorm(conv2.own, block.norm2);
  conv2.add = true;
  return Push(conv2);
}

WideStages::Signal WideStages::Block(const FusedBlock1d& block, const Signal& x,
                                     const Signal* skip) {
  WideStage conv1 = Convolve(block.conv1, x, skip, x.length);
  SetNorm(conv1.own, block.norm1);
  conv1.own.film_scale = block.film.scale_offset;
  conv1.own.film_bias = block.film.bias_offset;
  if (!conv1.shape.residual && (skip != nullptr || !x.block)) supported_ = false;
  return SecondHalf(block, Push(conv1));
}

WideStages::Signal WideStages::FirstBlock(const FusedUnet& unet, int horizon) {
  const FusedBlock1d& block = unet.down.front().block1;
  WideStage first;
  first.shape.rows = kWideSlots;
  first.shape.in_length = first.shape.out_length = horizon;
  first.shape.out_c = unet.first.out_c;
  first.own.bias = unet.first.bias;
  first.own.residual_bias = unet.first.residual_bias;
  first.own.channels = unet.first.out_c;
  SetNorm(first.own, block.norm1);
  first.own.film_scale = block.film.scale_offset;
  first.own.film_bias = block.film.bias_offset;
  return SecondHalf(block, Push(first));
}

WideStages::Signal WideStages::Resample(const DeviceFusedConv& conv, const Signal& x) {
  const bool up = conv.shape.phases == 2;
  WideStage stage = Convolve(conv, x, nullptr, up ? x.length : x.length / 2);
  return Push(stage);
}

}  // namespace mjp

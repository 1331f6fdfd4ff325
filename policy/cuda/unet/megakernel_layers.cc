#include "policy/cuda/unet/megakernel_layers.h"

#include <map>
#include <utility>

namespace mjp {

MegakernelLayers::MegakernelLayers(const NormConvUnet& unet, Format format, int horizon, int rows,
                                   DeviceArena& arena, const MegakernelLayers* packed)
    : format_(format), arena_(arena), packed_(packed) {
  args_.row_batches = rows > megakernel::kRowsPerBatch ? megakernel::kMaxRowBatches : 1;
  const Value x = LowerUnet(
      unet.steps, Value{},
      [&](const NormConvBlock& block, const UnetPlace&, const Value& in, const Value* skip) {
        return block.conv1.shape.in_c == 0 ? FirstBlock(block, unet.first, horizon)
                                           : Block(block, in, skip);
      },
      [&](const DeviceNormConv& conv, const UnetPlace&, const Value& in) {
        return Resample(conv, in);
      });
  megakernel::Layer last = Convolve(unet.final_conv, x, nullptr, x.length);
  SetNorm(last.epilogue, unet.final_norm);
  last.output_set_log2 = 0;
  Append(last, false);
  constexpr int kMaxGroupChannels = 128;
  args_.warp_specialized = megakernel::CanSpecializeWarps(layers_);
  if (args_.warp_specialized) megakernel::PlanCtaLocal(layers_);
  supported_ = supported_ && last.epilogue.group_channels <= kMaxGroupChannels &&
               megakernel::SkewIsBounded(layers_);
  supported_ = supported_ && megakernel::TwoMailboxBuffersSuffice(layers_);
  supported_ = supported_ && (args_.row_batches == 1 || args_.warp_specialized);
  if (supported_) megakernel::PlaceFence(layers_), ReorderWeights();
  SetSourceLayouts();
  PlaceMailboxes(&megakernel::Layer::mailbox);
  PlaceMailboxes(&megakernel::Layer::shortcut_mailbox);
  args_.mailboxes = arena.Take<float>(mailbox_values_);
  auto* layers = arena.Take<megakernel::Layer>(layers_.size());
  arena.Upload(layers, layers_.data(), layers_.size() * sizeof(megakernel::Layer));
  args_.layers = layers;
  args_.layer_count = static_cast<int>(layers_.size());
}

// Layers whose mailboxes have one layout use the same buffers in turn.
void MegakernelLayers::PlaceMailboxes(megakernel::Mailbox megakernel::Layer::*mailbox) {
  const auto layout = [&](const megakernel::Layer& s) {
    return std::pair{(s.*mailbox).tile_values, s.split_k_log2};
  };
  std::map<std::pair<int, int>, int> uses;
  for (megakernel::Layer& s : layers_)
    if ((s.*mailbox).tile_values > 0) (s.*mailbox).index = uses[layout(s)]++;
  for (const auto& [key, count] : uses) {
    for (megakernel::Layer& s : layers_)
      if (layout(s) == key) (s.*mailbox).uses = count, (s.*mailbox).offset = mailbox_values_;
    mailbox_values_ += 2 * args_.row_batches * megakernel::kCtas * key.first;
  }
}

// Activations are stored in the layout of the first layer that reads them.
void MegakernelLayers::SetSourceLayouts() {
  for (megakernel::Layer& reader : layers_) {
    for (int i = 0; i < 2; ++i) {
      for (megakernel::Layer& writer : layers_) {
        if (reader.source[i] == nullptr || writer.output != reader.source[i]) continue;
        if (writer.output_set_log2 < 0) writer.output_set_log2 = reader.rows_log2;
        reader.source_set_log2[i] = writer.output_set_log2;
      }
    }
  }
}

megakernel::Args MegakernelLayers::Args(const megakernel::CommonArgs& common,
                                        size_t shared_bytes) const {
  megakernel::Args args = args_;
  args.common = common;
  const megakernel::SharedSpace space =
      megakernel::PlanSharedSpace(layers_, args, format_, shared_bytes);
  args.accumulator_offset = space.accumulator_offset, args.local_offset = space.local_offset;
  return args;
}

size_t MegakernelLayers::SharedBytes(const megakernel::CommonArgs& common) const {
  const size_t most = kMaxSharedBytesSm90;
  return megakernel::PlanSharedSpace(layers_, Args(common, most), format_, most).bytes;
}

void MegakernelLayers::Launch(const megakernel::CommonArgs& common, size_t shared_bytes,
                              cudaStream_t stream) const {
  megakernel::LaunchMegakernel(format_, Args(common, shared_bytes), shared_bytes, stream);
}

void MegakernelLayers::SetNorm(megakernel::EpilogueSource& epilogue, const DeviceNorm& norm) {
  supported_ = supported_ && norm.groups == megakernel::kNormGroups;
  epilogue.norm_scale = norm.weight;
  epilogue.norm_shift = norm.bias;
}

// Each layer's, in the order in which the kernel reads them.
void MegakernelLayers::ReorderWeights() {
  for (size_t i = 0; i < layers_.size(); ++i) {
    megakernel::Layer& s = layers_[i];
    if (s.shape.in_c == 0) continue;
    if (packed_) {
      s.weight = packed_->layers_[i].weight;
      continue;
    }
    void* ordered = arena_.TakeBytes(WeightFragmentBytes(Format::kFp16, s.shape));
    if (!arena_.measuring())
      megakernel::LaunchReorderWeights(s.shape, s.cta_local, s.weight, ordered);
    s.weight = ordered;
  }
}

megakernel::Layer MegakernelLayers::Convolve(const DeviceNormConv& conv, const Value& x,
                                             const Value* skip, int out_length) {
  megakernel::Layer s;
  s.shape = conv.shape;
  s.shape.rows = megakernel::kRowsPerBatch;
  s.shape.in_length = x.length;
  s.shape.out_length = out_length;
  s.weight = conv.weight;
  s.source[0] = x.activations;
  s.source_channels = x.channels;
  if (skip != nullptr) s.source[1] = skip->activations;
  s.epilogue.bias = conv.bias;
  s.epilogue.shortcut_bias = conv.shortcut_bias;
  s.epilogue.channels = conv.shape.out_c;
  return s;
}

MegakernelLayers::Value MegakernelLayers::Append(megakernel::Layer& layer, bool has_output) {
  const NormConvShape& shape = layer.shape;
  Value out = {nullptr, shape.out_c, shape.out_length * shape.phases, layer.adds_residual};
  supported_ = supported_ && megakernel::PlanLayer(layer);
  if (has_output)
    layer.output = arena_.Take<uint16_t>(size_t{2} * args_.row_batches * shape.rows * out.channels *
                                         out.length);
  layers_.push_back(layer);
  out.activations = layer.output;
  return out;
}

MegakernelLayers::Value MegakernelLayers::SecondHalf(const NormConvBlock& block,
                                                     const Value& hidden) {
  megakernel::Layer conv2 = Convolve(block.conv2, hidden, nullptr, hidden.length);
  SetNorm(conv2.epilogue, block.norm2);
  conv2.adds_residual = true;
  return Append(conv2);
}

MegakernelLayers::Value MegakernelLayers::Block(const NormConvBlock& block, const Value& x,
                                                const Value* skip) {
  megakernel::Layer conv1 = Convolve(block.conv1, x, skip, x.length);
  SetNorm(conv1.epilogue, block.norm1);
  conv1.epilogue.film_scale = block.film.scale_offset;
  conv1.epilogue.film_bias = block.film.bias_offset;
  if (!conv1.shape.shortcut && (skip != nullptr || !x.ends_block)) supported_ = false;
  return SecondHalf(block, Append(conv1));
}

MegakernelLayers::Value MegakernelLayers::FirstBlock(const NormConvBlock& block,
                                                     const FirstConvArgs& conv, int horizon) {
  megakernel::Layer first;
  first.shape.rows = megakernel::kRowsPerBatch;
  first.shape.in_length = first.shape.out_length = horizon;
  first.shape.out_c = conv.out_c;
  first.epilogue.bias = conv.bias;
  first.epilogue.shortcut_bias = conv.shortcut_bias;
  first.epilogue.channels = conv.out_c;
  SetNorm(first.epilogue, block.norm1);
  first.epilogue.film_scale = block.film.scale_offset;
  first.epilogue.film_bias = block.film.bias_offset;
  return SecondHalf(block, Append(first));
}

MegakernelLayers::Value MegakernelLayers::Resample(const DeviceNormConv& conv, const Value& x) {
  const bool up = conv.shape.phases == 2;
  megakernel::Layer layer = Convolve(conv, x, nullptr, up ? x.length : x.length / 2);
  return Append(layer);
}

}  // namespace mjp

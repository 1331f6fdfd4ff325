#include "policy/cuda/unet/megakernel_layers.h"

namespace mjp {

MegakernelLayers::MegakernelLayers(const NormConvUnet& unet, Format format,
                                   const MegakernelPlan& plan, DeviceArena& arena,
                                   const MegakernelLayers* packed)
    : format_(format),
      arena_(arena),
      layers_(plan.Layers()),
      portable_(plan.portable),
      shared_bytes_(plan.shared.bytes) {
  args_.row_batches = plan.row_batches, args_.warp_specialized = plan.warp_specialized;
  args_.accumulator_offset = plan.shared.accumulator_offset;
  args_.local_offset = plan.shared.local_offset;
  SetWeights(unet);
  PlaceActivations(plan);
  if (plan.supported) ReorderWeights(packed);
  args_.mailboxes = arena.Take<float>(plan.mailbox_values);
  auto* layers = arena.Take<megakernel::Layer>(layers_.size());
  arena.Upload(layers, layers_.data(), layers_.size() * sizeof(megakernel::Layer));
  args_.layers = layers;
  args_.layer_count = static_cast<int>(layers_.size());
  if (!portable_) return;
  table_ = arena.TakeBytes(megakernel::PortableTableBytes(args_.layer_count));
  residuals_ = arena.Take<float4>(size_t{megakernel::kCtas} * megakernel::kMmaThreads);
}

// Those of each layer, in the plan's order.
void MegakernelLayers::SetWeights(const NormConvUnet& unet) {
  auto next = layers_.begin();
  const auto set = [&](const DeviceNormConv& conv, const DeviceNorm& norm) {
    megakernel::Layer& layer = *next++;
    layer.weight = conv.weight;
    layer.epilogue.bias = conv.bias, layer.epilogue.shortcut_bias = conv.shortcut_bias;
    layer.epilogue.norm_scale = norm.weight, layer.epilogue.norm_shift = norm.bias;
  };
  // the epilogue warps' own, whose weights they have from elsewhere
  DeviceNormConv first;
  first.bias = unet.first.bias, first.shortcut_bias = unet.first.shortcut_bias;
  for (const auto& step : unet.steps) {
    if (const auto* block = std::get_if<NormConvBlock>(&step.layer)) {
      set(block->conv1.shape.in_c == 0 ? first : block->conv1, block->norm1);
      set(block->conv2, block->norm2);
    } else {
      set(std::get<DeviceNormConv>(step.layer), {});
    }
  }
  set(unet.final_conv, unet.final_norm);
}

// Two buffers of each layer's output, for each row batch.
void MegakernelLayers::PlaceActivations(const MegakernelPlan& plan) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const MegakernelPlan::Step& step = plan.steps[i];
    const NormConvShape& shape = step.layer.shape;
    if (step.has_output)
      layers_[i].output = arena_.Take<uint16_t>(size_t{2} * args_.row_batches * shape.rows *
                                                shape.out_c * shape.out_length * shape.phases);
    for (int k = 0; k < 2; ++k)
      if (step.source[k] >= 0) layers_[i].source[k] = layers_[step.source[k]].output;
  }
}

void MegakernelLayers::Launch(const megakernel::CommonArgs& common, cudaStream_t stream) const {
  megakernel::Args args = args_;
  args.common = common;
  if (portable_)
    return megakernel::LaunchPortable(format_, {args, *portable_, table_, residuals_}, stream);
  megakernel::LaunchMegakernel(format_, args, shared_bytes_, stream);
}

// Each layer's, in the order in which the kernel reads them. `packed`: as in the constructor.
void MegakernelLayers::ReorderWeights(const MegakernelLayers* packed) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    megakernel::Layer& s = layers_[i];
    if (s.shape.in_c == 0) continue;
    if (packed) {
      s.weight = packed->layers_[i].weight;
      continue;
    }
    void* ordered = arena_.TakeBytes(WeightFragmentBytes(Format::kFp16, s.shape));
    if (!arena_.measuring())
      megakernel::LaunchReorderWeights(s.shape, s.cta_local, s.weight, ordered);
    s.weight = ordered;
  }
}

}  // namespace mjp

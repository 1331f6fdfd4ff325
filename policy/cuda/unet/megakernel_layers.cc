#include "policy/cuda/unet/megakernel_layers.h"

namespace mjp {

MegakernelLayers::MegakernelLayers(const NormConvUnet& unet, Format format, int horizon, int rows,
                                   const megakernel::Target& target, DeviceArena& arena,
                                   const MegakernelLayers* packed)
    : format_(format), arena_(arena), target_(target) {
  const MegakernelPlan plan = PlanMegakernel(unet, horizon, rows, target.portable);
  supported_ = plan.supported;
  layers_ = plan.Layers();
  args_.row_batches = plan.row_batches, args_.warp_specialized = plan.warp_specialized;
  PlaceActivations(plan);
  if (supported_) ReorderWeights(packed);
  args_.mailboxes = arena.Take<float>(plan.mailbox_values);
  auto* layers = arena.Take<megakernel::Layer>(layers_.size());
  arena.Upload(layers, layers_.data(), layers_.size() * sizeof(megakernel::Layer));
  args_.layers = layers;
  args_.layer_count = static_cast<int>(layers_.size());
  if (!target.portable) return;
  table_ = arena.TakeBytes(megakernel::PortableTableBytes(args_.layer_count));
  residuals_ = arena.Take<float4>(size_t{megakernel::kCtas} * megakernel::kMmaThreads);
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

megakernel::Args MegakernelLayers::Args(const megakernel::CommonArgs& common,
                                        size_t shared_bytes) const {
  megakernel::Args args = args_;
  args.common = common;
  const megakernel::SharedSpace space =
      megakernel::PlanSharedSpace(layers_, args, format_, shared_bytes);
  args.accumulator_offset = space.accumulator_offset, args.local_offset = space.local_offset;
  return args;
}

megakernel::PortablePlan MegakernelLayers::Portable(const megakernel::CommonArgs& common) const {
  megakernel::Args args = args_;
  args.common = common;
  return megakernel::PlanPortable(layers_, args, format_, target_);
}

size_t MegakernelLayers::SharedBytes(const megakernel::CommonArgs& common) const {
  if (target_.portable) return Portable(common).shared_bytes;
  const size_t most = kMaxSharedBytesSm90;
  return megakernel::PlanSharedSpace(layers_, Args(common, most), format_, most).bytes;
}

void MegakernelLayers::Launch(const megakernel::CommonArgs& common, size_t shared_bytes,
                              cudaStream_t stream) const {
  if (target_.portable) {
    megakernel::PortableArgs args = {args_, Portable(common), table_, residuals_};
    args.args.common = common;
    return megakernel::LaunchPortable(format_, args, stream);
  }
  megakernel::LaunchMegakernel(format_, Args(common, shared_bytes), shared_bytes, stream);
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

#include "policy/cuda/unet/megakernel_layers.h"

namespace mjp {

MegakernelLayers::MegakernelLayers(const NormConvUnet& unet, Format format, int horizon, int rows,
                                   UnetForm form, const megakernel::Target& target,
                                   DeviceArena& arena, const MegakernelLayers* packed)
    : format_(format), arena_(arena), target_(target) {
  const MegakernelPlan plan =
      PlanMegakernel(unet, horizon, rows, form == UnetForm::kMegakernelRoles);
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

void MegakernelLayers::PlaceInShared(const megakernel::CommonArgs& common) {
  megakernel::Args args = args_;
  args.common = common;
  if (target_.portable) {
    portable_ = megakernel::PlanPortable(layers_, args, format_, target_);
    shared_bytes_ = portable_.shared_bytes;
    return;
  }
  const megakernel::SharedSpace space =
      megakernel::PlanSharedSpace(layers_, args, format_, target_.shared_bytes);
  args_.accumulator_offset = space.accumulator_offset, args_.local_offset = space.local_offset;
  shared_bytes_ = space.bytes;
}

void MegakernelLayers::Launch(const megakernel::CommonArgs& common, cudaStream_t stream) const {
  megakernel::Args args = args_;
  args.common = common;
  if (target_.portable)
    return megakernel::LaunchPortable(format_, {args, portable_, table_, residuals_}, stream);
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

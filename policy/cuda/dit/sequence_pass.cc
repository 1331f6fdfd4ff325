#include "policy/cuda/dit/sequence_pass.h"

#include <vector>

#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp {
namespace {

sequence_kernel::Shape ShapeOf(const DitConfig& config) {
  sequence_kernel::Shape shape;
  shape.width = config.hidden, shape.heads = config.heads, shape.layers = config.layers;
  shape.length = config.horizon, shape.action_dim = config.action_dim;
  return shape;
}

// The places of the blocks' weights, in device memory.
const sequence_kernel::BlockWeights* UploadBlocks(const DeviceDit& weights, DeviceArena& arena) {
  std::vector<sequence_kernel::BlockWeights> blocks;
  for (const DeviceDitBlock& block : weights.blocks)
    blocks.push_back({block.qkv.weight, block.out.weight, block.mlp1.weight, block.mlp2.weight,
                      block.qkv.bias, block.out.bias, block.mlp1.bias, block.mlp2.bias});
  auto* device = arena.Take<sequence_kernel::BlockWeights>(blocks.size());
  arena.Upload(device, blocks.data(), blocks.size() * sizeof(blocks[0]));
  return device;
}

}  // namespace

bool SequenceKernelRuns(const DitConfig& config, Format format, int rows, const GpuTraits& gpu) {
  const sequence_kernel::Shape shape = ShapeOf(config);
  return sequence_kernel::Supports(format, shape, gpu) &&
         rows * shape.Ctas() <= gpu.MultiprocessorsInClusters(shape.Ctas());
}

bool SequenceClustersRun(const DitConfig& config, Format format, int rows, const GpuTraits& gpu) {
  return sequence_kernel::SupportsClusters(format, ShapeOf(config), rows, gpu);
}

SequencePass::SequencePass(const DeviceDit& weights, const DitConfig& config, Format format,
                           int rows, const FilmConditioning& conditioning, DeviceArena& arena,
                           DitForm form, const SequencePass* first)
    : format_(format), form_(form), conditioning_(conditioning) {
  args_.shape = ShapeOf(config);
  args_.rows = rows;
  if (first != nullptr) {
    args_.weights = first->args_.weights;
  } else {
    const auto* blocks = UploadBlocks(weights, arena);
    form == DitForm::kSequenceClusters ? TakeMailboxes(blocks, arena) : Pack(blocks, arena);
  }
  args_.input_weight = weights.input.weight;
  args_.input_bias = weights.input_bias;
  args_.output_weight = weights.output.weight;
  args_.output_bias = weights.output.bias;
  args_.cosines = weights.cosines, args_.sines = weights.sines;
  args_.terms = conditioning_.Tables();
  args_.storage_pitch = PaddedChannels(config.action_dim);
  const size_t positions = size_t{1} * rows * config.horizon;
  input_ = arena.TakeBytes(positions * args_.storage_pitch * FormatBytes(format));
  args_.output = arena.Take<float>(positions * config.action_dim);
}

void SequencePass::Pack(const sequence_kernel::BlockWeights* blocks, DeviceArena& arena) {
  void* packed = arena.TakeBytes(sequence_kernel::PackedBytes(args_.shape));
  if (!arena.measuring()) sequence_kernel::LaunchPackWeights(args_.shape, blocks, packed);
  args_.weights = packed;
}

void SequencePass::TakeMailboxes(const sequence_kernel::BlockWeights* blocks, DeviceArena& arena) {
  const size_t bytes = sequence_kernel::MailboxBytes(args_.shape, args_.rows);
  args_.blocks = blocks;
  args_.mailboxes = arena.TakeBytes(bytes);
  if (arena.measuring()) return;
  timed_out_ = PinnedArray<int>(1);
  args_.timed_out = timed_out_.data();
  CheckCuda(cudaMemset(args_.mailboxes, 0, bytes), "mailboxes of the sequence kernel");
}

void SequencePass::Launch(const sequence_kernel::Args& args, cudaStream_t stream) const {
  form_ == DitForm::kSequenceClusters
      ? sequence_kernel::LaunchSequenceKernelAcrossClusters(format_, args, stream)
      : sequence_kernel::LaunchSequenceKernel(format_, args, stream);
}

void SequencePass::RunPass(const int* row_step, cudaStream_t stream) const {
  sequence_kernel::Args a = args_;
  a.x_storage = input_;
  a.row_step = row_step;
  Launch(a, stream);
}

bool SequencePass::RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin,
                            int end, const TimestampList& timestamps, cudaStream_t stream) const {
  sequence_kernel::Args a = args_;
  a.schedule = steps, a.noise = noise, a.x = x;
  a.begin = begin, a.end = end;
  a.timestamps = timestamps.After(begin + 1);
  Launch(a, stream);
  return true;
}

}  // namespace mjp

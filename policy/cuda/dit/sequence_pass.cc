#include "policy/cuda/dit/sequence_pass.h"

#include <vector>

namespace mjp {
namespace {

sequence_kernel::Shape ShapeOf(const DitConfig& config) {
  sequence_kernel::Shape shape;
  shape.width = config.hidden, shape.heads = config.heads, shape.layers = config.layers;
  shape.length = config.horizon, shape.action_dim = config.action_dim;
  return shape;
}

}  // namespace

bool SequenceKernelRuns(const DitConfig& config, Format format, const GpuTraits& gpu) {
  return sequence_kernel::Supports(format, ShapeOf(config), gpu);
}

SequencePass::SequencePass(const DeviceDit& weights, const DitConfig& config, Format format,
                           int rows, const FilmConditioning& conditioning, DeviceArena& arena,
                           const SequencePass* first)
    : format_(format), conditioning_(conditioning) {
  args_.shape = ShapeOf(config);
  args_.rows = rows;
  args_.weights = first != nullptr ? first->args_.weights : Pack(weights, arena);
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

const void* SequencePass::Pack(const DeviceDit& weights, DeviceArena& arena) const {
  std::vector<sequence_kernel::BlockWeights> blocks;
  for (const DeviceDitBlock& block : weights.blocks)
    blocks.push_back({block.qkv.weight, block.out.weight, block.mlp1.weight, block.mlp2.weight,
                      block.qkv.bias, block.out.bias, block.mlp1.bias, block.mlp2.bias});
  auto* device = arena.Take<sequence_kernel::BlockWeights>(blocks.size());
  arena.Upload(device, blocks.data(), blocks.size() * sizeof(blocks[0]));
  void* packed = arena.TakeBytes(sequence_kernel::PackedBytes(args_.shape));
  if (!arena.measuring()) sequence_kernel::LaunchPackWeights(args_.shape, device, packed);
  return packed;
}

void SequencePass::RunPass(const int* row_step, cudaStream_t stream) const {
  sequence_kernel::Args a = args_;
  a.x_storage = input_;
  a.row_step = row_step;
  sequence_kernel::LaunchSequenceKernel(format_, a, stream);
}

bool SequencePass::RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin,
                            int end, const TimestampList& timestamps, cudaStream_t stream) const {
  sequence_kernel::Args a = args_;
  a.schedule = steps, a.noise = noise, a.x = x;
  a.begin = begin, a.end = end;
  a.timestamps = timestamps.After(begin + 1);
  sequence_kernel::LaunchSequenceKernel(format_, a, stream);
  return true;
}

}  // namespace mjp

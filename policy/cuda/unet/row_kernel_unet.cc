#include "policy/cuda/unet/row_kernel_unet.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp {
namespace {

using row_kernel::ConvolutionWeights;
using row_kernel::FragmentSource;
using row_kernel::kBlockChannels;

// As the packed weights hold them.
ConvolutionWeights WeightsOf(const DeviceNormConv& conv, const DeviceNorm& norm) {
  const NormConvShape s = conv.shape;
  const auto* from = static_cast<const uint8_t*>(conv.weight);
  ConvolutionWeights weights;
  weights.fragment = [s, from](int phase, int out, int block, int tap) {
    const size_t tile = static_cast<size_t>(phase) * (s.out_c / kBlockChannels) + out;
    const size_t at = (tile * (s.in_c / kBlockChannels) + block) * (s.taps + s.shortcut) + tap;
    return FragmentSource{from + at * kFragmentBytes};
  };
  weights.bias = conv.bias, weights.scale = norm.weight, weights.shift = norm.bias;
  return weights;
}

// The first convolution's are float32, of fewer channels than a product takes.
ConvolutionWeights WeightsOf(const FirstConvWeights& f, const DeviceNorm& norm) {
  ConvolutionWeights weights;
  weights.fragment = [f](int, int out, int block, int tap) {
    const int i = block * kBlockChannels;
    const float* tap_weight =
        tap < f.taps ? f.weight + static_cast<size_t>(tap) * f.in_c * f.out_c : f.shortcut_weight;
    return FragmentSource{tap_weight + static_cast<size_t>(i) * f.out_c + out * kBlockChannels, 1,
                          f.out_c, kBlockChannels, std::min(kBlockChannels, f.in_c - i)};
  };
  weights.bias = f.bias, weights.scale = norm.weight, weights.shift = norm.bias;
  return weights;
}

ConvolutionWeights WeightsOf(const HeadWeights& head, int channels) {
  ConvolutionWeights weights;
  weights.fragment = [head, channels](int, int out, int block, int) {
    const int o = out * kBlockChannels;
    return FragmentSource{head.weight + static_cast<size_t>(o) * channels + block * kBlockChannels,
                          channels, 1, std::min(kBlockChannels, head.out_c - o), kBlockChannels};
  };
  return weights;
}

}  // namespace

std::vector<ConvolutionWeights> RowKernelWeights(const NormConvUnet& unet) {
  std::vector<ConvolutionWeights> all;
  for (const auto& step : unet.steps) {
    if (const auto* block = std::get_if<NormConvBlock>(&step.layer)) {
      const bool first = block->conv1.shape.in_c == 0;
      all.push_back(first ? WeightsOf(unet.first, block->norm1)
                          : WeightsOf(block->conv1, block->norm1));
      all.push_back(WeightsOf(block->conv2, block->norm2));
      all.back().shortcut_bias = first ? unet.first.shortcut_bias : block->conv1.shortcut_bias;
    } else {
      all.push_back(WeightsOf(std::get<DeviceNormConv>(step.layer), {}));
    }
  }
  all.push_back(WeightsOf(unet.final_conv, unet.final_norm));
  all.push_back(WeightsOf(unet.head, unet.final_conv.shape.out_c));
  return all;
}

RowKernelUnet::RowKernelUnet(const NormConvUnet& unet, Format format, int horizon,
                             const RowKernelPlan& planned, int rows, int rows_per_env,
                             DeviceArena& arena, const RowKernelUnet* first)
    : format_(format),
      conditioning_(first ? first->conditioning_.Shared(rows_per_env)
                          : FilmConditioning(unet.film, format, rows, rows_per_env, arena)),
      input_pitch_(unet.first.pitch) {
  const row_kernel::Plan& plan = planned.plan;
  input_ =
      arena.TakeBytes(static_cast<size_t>(rows) * horizon * input_pitch_ * FormatBytes(format));
  if (first) {
    args_ = first->args_;
  } else {
    const auto upload = [&](const auto& values) {
      using T = std::decay_t<decltype(values[0])>;
      T* device = arena.Take<T>(values.size());
      arena.Upload(device, values.data(), values.size() * sizeof(T));
      return device;
    };
    const std::vector<ConvolutionWeights> of_layers = RowKernelWeights(unet);
    const std::vector<FragmentSource> fragments = plan.Fragments(of_layers);
    auto* weights = arena.Take<uint8_t>(fragments.size() * kFragmentBytes);
    const FragmentSource* sources = upload(fragments);
    if (!arena.measuring())
      row_kernel::LaunchGatherFragments(format, sources, static_cast<int>(fragments.size()),
                                        weights);
    auto* terms = arena.Take<float4>(plan.term_count());
    const std::vector<row_kernel::TermSource> of_terms = plan.Terms(of_layers);
    const row_kernel::TermSource* term_sources = upload(of_terms);
    if (!arena.measuring())
      row_kernel::LaunchGatherTerms(term_sources, static_cast<int>(of_terms.size()), terms);
    args_.terms = terms;
    args_.weights = weights;
    args_.layers = upload(plan.layers());
    args_.steps = upload(plan.steps());
    args_.ranges = upload(plan.WeightRanges());
  }
  if (planned.config.clusters > 1 && !first) TakeMailboxes(plan, arena);
  args_.rows = rows, args_.ctas = planned.config.ctas;
  args_.clusters = planned.config.clusters, args_.ring_chunks = planned.config.ring_chunks;
  args_.length = horizon, args_.action_dim = unet.head.out_c;
  args_.layer_count = static_cast<int>(plan.layers().size());
  args_.step_count = static_cast<int>(plan.steps().size());
  args_.head_bias = unet.head.bias;
  args_.shared = plan.shared();
  args_.input = planned.x.at, args_.input_pitch = planned.x.pitch;
  args_.film = conditioning_.Tables();
  args_.output = arena.Take<float>(size_t{1} * rows * horizon * args_.action_dim);
}

void RowKernelUnet::TakeMailboxes(const row_kernel::Plan& plan, DeviceArena& arena) {
  const size_t pairs = size_t{2} * row_kernel::kClusters * plan.mailbox_pairs();
  args_.mailbox_pairs = plan.mailbox_pairs();
  args_.mailboxes = arena.Take<uint2>(pairs);
  args_.exchanges = arena.Take<uint32_t>(1);
  if (arena.measuring()) return;
  timed_out_ = PinnedArray<int>(1);
  args_.timed_out = timed_out_.data();
  CheckCuda(cudaMemset(args_.mailboxes, 0, pairs * sizeof(uint2)), "mailboxes of the row kernel");
  CheckCuda(cudaMemset(args_.exchanges, 0, sizeof(uint32_t)), "mailboxes of the row kernel");
}

void RowKernelUnet::Launch(const row_kernel::Args& args, cudaStream_t stream) const {
  args.clusters > 1 ? row_kernel::LaunchRowKernelAcrossClusters(format_, args, stream)
                    : row_kernel::LaunchRowKernel(format_, args, stream);
}

void RowKernelUnet::RunPass(const int* row_step, cudaStream_t stream) const {
  row_kernel::Args a = args_;
  a.x_storage = input_, a.storage_pitch = input_pitch_;
  a.row_step = row_step;
  Launch(a, stream);
}

bool RowKernelUnet::RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin,
                             int end, const TimestampList& timestamps, cudaStream_t stream) const {
  row_kernel::Args a = args_;
  a.schedule = steps, a.noise = noise, a.x = x;
  a.begin = begin, a.end = end;
  a.timestamps = timestamps.After(begin + 1);
  Launch(a, stream);
  return true;
}

}  // namespace mjp

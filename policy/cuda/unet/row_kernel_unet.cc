#include "policy/cuda/unet/row_kernel_unet.h"

#include <algorithm>
#include <utility>

namespace mjp {
namespace {

using row_kernel::Buffer;
using row_kernel::Convolution;
using row_kernel::FragmentSource;
using row_kernel::kBlockChannels;

constexpr int kHalo = 2;  // of the widest kernel

// A value of the graph and how often it is still read.
struct Value {
  Buffer buffer;
  int reads = 1;
};

// Channels of x in shared memory.
int InputChannels(const FirstConvArgs& first) {
  return (first.in_c + kBlockChannels - 1) / kBlockChannels * kBlockChannels;
}

// The weights of a convolution that norm_conv's packing holds.
auto PackedFragments(const DeviceNormConv& conv) {
  const NormConvShape s = conv.shape;
  const auto* from = static_cast<const uint8_t*>(conv.weight);
  return [s, from](int phase, int out, int block, int tap) {
    const size_t tile = static_cast<size_t>(phase) * (s.out_c / kBlockChannels) + out;
    const size_t at = (tile * (s.in_c / kBlockChannels) + block) * (s.taps + s.shortcut) + tap;
    return FragmentSource{from + at * kFragmentBytes};
  };
}

// Lowers a network into a plan.
class Lowering {
 public:
  Lowering(const NormConvUnet& unet, int horizon, row_kernel::Plan& plan)
      : unet_(unet), plan_(plan), x_{plan.Take(horizon, InputChannels(unet.first))} {
    // of its own: a CTA may still read it when others are at the next pass' first layers
    const Buffer last_output = plan.Take(horizon, unet.final_conv.shape.out_c);
    Value last = LowerUnet(
        unet.steps, x_,
        [&](const NormConvBlock& block, const UnetPlace& place, Value& in, Value* skip) {
          return Block(block, place, in, skip);
        },
        [&](const DeviceNormConv& conv, const UnetPlace& place, Value& in) {
          return Resample(conv, place, in);
        });
    Convolution final_conv = Convolve(unet.final_conv, last.buffer, horizon);
    SetNorm(final_conv, unet.final_norm);
    plan.GiveBack(std::exchange(final_conv.output, last_output));
    plan.Add(final_conv);
    AddHead(final_conv.output);
    plan.Finish();
  }
  const Buffer& x() const { return x_.buffer; }
  bool Supported() const { return supported_ && plan_.Supported(); }

 private:
  static void SetNorm(Convolution& c, const DeviceNorm& norm) {
    c.groups = norm.groups, c.scale = norm.weight, c.shift = norm.bias;
  }

  Convolution Convolve(const DeviceNormConv& conv, const Buffer& x, int out_length) {
    Convolution c;
    c.shape = conv.shape;
    c.shape.out_length = out_length;
    c.source[0] = x;
    c.bias = conv.bias, c.shortcut_bias = conv.shortcut_bias;
    c.fragment = PackedFragments(conv);
    c.output = plan_.Take(out_length * conv.shape.phases, conv.shape.out_c);
    return c;
  }

  // The first convolution: its weights are float32, of fewer channels than a product takes.
  Convolution ConvolveFirst(const Buffer& x) {
    const FirstConvArgs& f = unet_.first;
    DeviceNormConv conv;
    conv.shape.in_c = InputChannels(f), conv.shape.out_c = f.out_c;
    conv.shape.taps = f.taps, conv.shape.pad = f.taps / 2;
    conv.shape.shortcut = f.shortcut_weight != nullptr;
    conv.bias = f.bias, conv.shortcut_bias = f.shortcut_bias;
    Convolution c = Convolve(conv, x, x.length);
    c.fragment = [f](int, int out, int block, int tap) {
      const int i = block * kBlockChannels;
      const float* tap_weight =
          tap < f.taps ? f.weight + static_cast<size_t>(tap) * f.in_c * f.out_c : f.shortcut_weight;
      return FragmentSource{tap_weight + static_cast<size_t>(i) * f.out_c + out * kBlockChannels, 1,
                            f.out_c, kBlockChannels, std::min(kBlockChannels, f.in_c - i)};
    };
    return c;
  }

  void Read(Value& value) {
    if (--value.reads == 0) plan_.GiveBack(value.buffer);
  }

  Value Block(const NormConvBlock& block, const UnetPlace& place, Value& in, Value* skip) {
    const int length = in.buffer.length;
    const bool first = block.conv1.shape.in_c == 0;
    Convolution conv1 = first ? ConvolveFirst(in.buffer) : Convolve(block.conv1, in.buffer, length);
    if (skip) conv1.source[1] = skip->buffer;
    SetNorm(conv1, block.norm1);
    conv1.film_scale = block.film.scale_offset, conv1.film_bias = block.film.bias_offset;
    plan_.Add(conv1);
    Convolution conv2 = Convolve(block.conv2, conv1.output, length);
    SetNorm(conv2, block.norm2);
    conv2.adds_shortcut = conv1.shape.shortcut;
    conv2.shortcut_bias = conv1.shortcut_bias;
    if (!conv2.adds_shortcut) {
      conv2.residual = in.buffer;
      supported_ = supported_ && skip == nullptr && !first;  // no identity of concatenated channels
    }
    plan_.Add(conv2);
    plan_.GiveBack(conv1.output);
    if (!first) Read(in);  // x stays where the next step puts it
    if (skip) Read(*skip);
    return {conv2.output, 1 + place.gives_skip};
  }

  Value Resample(const DeviceNormConv& conv, const UnetPlace& place, Value& in) {
    const bool up = conv.shape.phases == 2;
    const Convolution c = Convolve(conv, in.buffer, up ? in.buffer.length : in.buffer.length / 2);
    plan_.Add(c);
    Read(in);
    return {c.output, 1 + place.gives_skip};
  }

  void AddHead(const Buffer& in) {
    const HeadArgs& head = unet_.head;
    Convolution c;
    c.shape.in_c = in.channels, c.shape.out_c = head.out_c;
    c.shape.out_length = in.length;
    c.source[0] = in;
    const int channels = in.channels;
    c.fragment = [head, channels](int, int out, int block, int) {
      const int o = out * kBlockChannels;
      return FragmentSource{
          head.weight + static_cast<size_t>(o) * channels + block * kBlockChannels, channels, 1,
          std::min(kBlockChannels, head.out_c - o), kBlockChannels};
    };
    plan_.Add(c);
  }

  const NormConvUnet& unet_;
  row_kernel::Plan& plan_;
  Value x_;
  bool supported_ = true;
};

}  // namespace

PlannedRowKernel PlanRowKernel(const NormConvUnet& unet, int horizon,
                               const row_kernel::Config& config) {
  PlannedRowKernel planned = {row_kernel::Plan(config, kHalo), {}, false};
  const Lowering lowering(unet, horizon, planned.plan);
  planned.x = lowering.x();
  planned.supported = lowering.Supported();
  return planned;
}

bool RowKernelRuns(const NormConvUnet& unet, Format format, int horizon,
                   const row_kernel::Config& config, const GpuTraits& gpu) {
  if (FormatBytes(format) != 2 || horizon * unet.head.out_c > row_kernel::kMaxElements ||
      config.ctas > gpu.ClusterBlocks())
    return false;
  const PlannedRowKernel planned = PlanRowKernel(unet, horizon, config);
  return planned.supported && planned.plan.shared().end <= gpu.shared_bytes;
}

RowKernelUnet::RowKernelUnet(const NormConvUnet& unet, Format format, int horizon, int rows,
                             int rows_per_env, const row_kernel::Config& config, DeviceArena& arena,
                             const RowKernelUnet* first)
    : format_(format),
      conditioning_(first ? first->conditioning_.Shared(rows_per_env)
                          : FilmConditioning(unet.film, format, rows, rows_per_env, arena)),
      input_pitch_(unet.first.pitch) {
  const PlannedRowKernel planned = PlanRowKernel(unet, horizon, config);
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
    const std::vector<FragmentSource> fragments = plan.Fragments();
    auto* weights = arena.Take<uint8_t>(fragments.size() * kFragmentBytes);
    const FragmentSource* sources = upload(fragments);
    if (!arena.measuring())
      row_kernel::LaunchGatherFragments(format, sources, static_cast<int>(fragments.size()),
                                        weights);
    auto* terms = arena.Take<float4>(plan.term_count());
    const row_kernel::TermSource* term_sources = upload(plan.terms());
    if (!arena.measuring())
      row_kernel::LaunchGatherTerms(term_sources, static_cast<int>(plan.terms().size()), terms);
    args_.terms = terms;
    args_.weights = weights;
    args_.layers = upload(plan.layers());
    args_.steps = upload(plan.steps());
    args_.ranges = upload(plan.WeightRanges());
  }
  args_.rows = rows, args_.ctas = config.ctas, args_.ring_chunks = config.ring_chunks;
  args_.length = horizon, args_.action_dim = unet.head.out_c;
  args_.layer_count = static_cast<int>(plan.layers().size());
  args_.step_count = static_cast<int>(plan.steps().size());
  args_.head_bias = unet.head.bias;
  args_.shared = plan.shared();
  args_.input = planned.x.at, args_.input_pitch = planned.x.pitch;
  args_.film = conditioning_.Tables();
  args_.output = arena.Take<float>(size_t{1} * rows * horizon * args_.action_dim);
}

void RowKernelUnet::RunPass(const int* row_step, cudaStream_t stream) const {
  row_kernel::Args a = args_;
  a.x_storage = input_, a.storage_pitch = input_pitch_;
  a.row_step = row_step;
  row_kernel::LaunchRowKernel(format_, a, stream);
}

bool RowKernelUnet::RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin,
                             int end, const TimestampList& timestamps, cudaStream_t stream) const {
  row_kernel::Args a = args_;
  a.schedule = steps, a.noise = noise, a.x = x;
  a.begin = begin, a.end = end;
  a.timestamps = timestamps.After(begin + 1);
  row_kernel::LaunchRowKernel(format_, a, stream);
  return true;
}

}  // namespace mjp

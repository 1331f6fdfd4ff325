#include "apps/bench/device.h"
#include "apps/bench/gpu_timer.h"
#include "apps/bench/suites/ladder_chain.h"
#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/norm/group_norm.cuh"
#include "kernels/cuda/sampler/denoise.cuh"
#include "kernels/ladder/conv1d.cuh"
#include "kernels/ladder/denoise.cuh"
#include "kernels/ladder/group_norm_mish.cuh"

// The rungs of kernels/ladder side by side, each ladder ending with the shipped launcher. 16 rows
// (a window of time-parallel denoising) of 512 channels at 8 positions; a chunk of 16 x 2 numbers.

namespace mjp::app {
namespace {

using mjp::Format;
namespace ladder = mjp::ladder;

constexpr int kRows = 16, kChannels = 512, kLength = ladder::kLadderLength,
              kTaps = ladder::kLadderTaps;
constexpr int kGroups = 8, kHorizon = 16, kActionDim = 2, kPitch = 8;
constexpr size_t kMap = size_t{kRows} * kChannels * kLength;

class Ladders {
 public:
  explicit Ladders(const BenchOptions& options) : seconds_(options.seconds / 10) {}

  BenchRows Run() {
    Conv1d();
    GroupNormMish();
    Denoise();
    out_ = Joined(std::move(out_), BenchChainLadder(seconds_));
    return std::move(out_);
  }

 private:
  void Add(const std::string& name, Format format, const KernelSetup& rung) {
    out_ = Joined(std::move(out_), TimeKernel("ladder", name, seconds_, format, rung));
  }

  template <typename Args>
  void Add(const std::string& name, void (*launch)(const Args&, cudaStream_t),
           Args (*arguments)(DeviceData&)) {
    Add(name, Format::kFp32, [=](DeviceData& data) -> GpuWork {
      return [=, args = arguments(data)](cudaStream_t stream) { launch(args, stream); };
    });
  }

  static ladder::Conv1dArgs Conv1dArguments(DeviceData& data) {
    return {kRows,
            kChannels,
            kChannels,
            kLength,
            kTaps,
            data.Floats(kMap),
            data.Floats(size_t{kChannels} * kChannels * kTaps),
            data.Floats(kChannels),
            data.Floats(kMap)};
  }

  void Conv1d() {
    Add("conv1d: 1 naive", ladder::Conv1dNaive, Conv1dArguments);
    Add("conv1d: 2 threads share the channels", ladder::Conv1dReduce, Conv1dArguments);
    Add("conv1d: 3 four outputs per block", ladder::Conv1dTile, Conv1dArguments);
    Add("conv1d: 4 fp16, tensor cores (LaunchConv)", Format::kFp16,
        [](DeviceData& data) -> GpuWork {
          mjp::ConvArgs a;
          a.shape.batch = kRows;
          a.shape.in_w = a.shape.out_w = kLength;
          a.shape.in_c = a.shape.out_c = kChannels;
          a.shape.kernel_w = kTaps, a.shape.pad_w = kTaps / 2;
          a.x = data.Stored(kMap);
          a.weight = data.Zeros<uint8_t>(mjp::PackedConvBytes(Format::kFp16, a.shape));
          a.bias = data.Floats(kChannels);
          a.y = data.Stored(kMap);
          return [a](cudaStream_t stream) { mjp::LaunchConv(Format::kFp16, a, stream); };
        });
  }

  static ladder::GroupNormMishArgs NormArguments(DeviceData& data) {
    ladder::GroupNormMishArgs a;
    a.batch = kRows, a.channels = kChannels, a.length = kLength, a.groups = kGroups;
    a.x = data.Floats(kMap);
    a.weight = data.Floats(kChannels);
    a.bias = data.Floats(kChannels);
    a.mean = data.Floats(kRows * kGroups);
    a.inverse = data.Floats(kRows * kGroups);
    a.normalised = data.Floats(kMap);
    a.y = data.Floats(kMap);
    return a;
  }

  void GroupNormMish() {
    Add("GroupNorm + Mish: 1 three launches", ladder::GroupNormMishUnfused, NormArguments);
    Add("GroupNorm + Mish: 2 one launch", ladder::GroupNormMishFused, NormArguments);
    Add("GroupNorm + Mish: 3 fp16, packs in registers (LaunchGroupNorm)", Format::kFp16,
        [](DeviceData& data) -> GpuWork {
          mjp::GroupNormArgs a;
          a.rows = kRows, a.positions = kLength, a.channels = kChannels, a.groups = kGroups;
          a.x = data.Stored(kMap);
          a.y = data.Stored(kMap);
          a.weight = data.Floats(kChannels);
          a.bias = data.Floats(kChannels);
          a.activation = mjp::Activation::kMish;
          return [a](cudaStream_t stream) { mjp::LaunchGroupNorm(Format::kFp16, a, stream); };
        });
  }

  static ladder::DenoiseArgs DenoiseArguments(DeviceData& data) {
    ladder::DenoiseArgs a;
    a.count = kHorizon * kActionDim;
    a.timestep = 50;
    a.table = data.Zeros<mjp::DenoiseStep>(a.timesteps);
    a.x = data.Floats(a.count);
    a.output = data.Floats(a.count);
    a.noise = data.Floats(a.count);
    a.x0 = data.Floats(a.count);
    a.mean = data.Floats(a.count);
    a.next = data.Floats(a.count);
    return a;
  }

  void Denoise() {
    Add("denoise: 1 four launches, constants from the formula", ladder::DenoiseStraight,
        DenoiseArguments);
    Add("denoise: 2 one launch, constants from a table", ladder::DenoiseTable, DenoiseArguments);
    Add("denoise: 3 constants as arguments, next input too (LaunchDenoise)", Format::kFp16,
        [](DeviceData& data) -> GpuWork {
          mjp::DenoiseArgs a;
          a.step.clip = 1, a.step.sigma = 0.1f;
          a.positions = kHorizon, a.action_dim = kActionDim, a.pitch = kPitch;
          a.output = data.Floats(kHorizon * kActionDim);
          a.noise = data.Floats(kHorizon * kActionDim);
          a.x = a.next = data.Floats(kHorizon * kActionDim);
          a.input = data.Stored(kHorizon * kPitch);
          return [a](cudaStream_t stream) { mjp::LaunchDenoise(Format::kFp16, a, stream); };
        });
  }

  double seconds_;
  BenchRows out_;
};

}  // namespace

BenchRows BenchLadderCuda(const BenchOptions& options) { return Ladders(options).Run(); }

}  // namespace mjp::app

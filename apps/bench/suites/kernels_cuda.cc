#include "apps/bench/device.h"
#include "apps/bench/gpu_timer.h"
#include "apps/bench/scenes.h"
#include "apps/bench/suites/transformer_cuda.h"
#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/norm/conv_group_norm.cuh"
#include "kernels/cuda/norm/group_norm.cuh"
#include "kernels/cuda/norm/group_norm_max_pool.cuh"
#include "kernels/cuda/norm/pool.cuh"
#include "kernels/cuda/sampler/conditioning.cuh"
#include "kernels/cuda/sampler/denoise.cuh"
#include "policy/cuda/format_of.h"
#include "tasks/pusht/pictures/rasterise_cuda.h"

// Every operator of the GPU backend alone, in shapes of the notebook's networks.

namespace mjp::app {
namespace {

constexpr int kHorizon = 16, kActionDim = 2, kPitch = 8, kSteps = 100;

class CudaKernels {
 public:
  explicit CudaKernels(const BenchOptions& options)
      : seconds_(options.seconds / 20),
        format_(mjp::FormatOf(options.policy.precision)),
        rows_(options.policy.batch),
        frames_(2 * rows_) {}

  BenchRows Run() {
    Convolutions();
    Norms();
    Pools();
    Chain();
    Pictures();
    return std::move(out_);
  }

 private:
  void Add(const std::string& name, double items, const std::string& unit,
           const KernelSetup& setup) {
    for (BenchRow& row : TimeKernel("kernels", name, seconds_, format_, setup)) {
      row.items = items, row.unit = unit;
      out_.push_back(std::move(row));
    }
  }

  void Convolution(const std::string& name, const mjp::ConvShape& shape, bool epilogue) {
    const double operations = 2e-9 * shape.Positions() * shape.phases * shape.out_c * shape.K();
    Add(name, operations, "GFLOP", [&](DeviceData& data) -> GpuWork {
      mjp::ConvArgs a;
      a.shape = shape;
      a.x = data.Stored(size_t{1} * shape.batch * shape.in_h * shape.in_w * shape.in_c);
      a.weight = data.Zeros<uint8_t>(mjp::PackedConvBytes(format_, shape));
      a.bias = data.Floats(shape.out_c);
      const size_t outputs = size_t{1} * shape.Positions() * shape.phases * shape.out_c;
      a.y = data.Zeros<float>(outputs);
      if (epilogue) a.residual = data.Stored(outputs), a.relu = true;
      return [a, format = format_](cudaStream_t s) { mjp::LaunchConv(format, a, s); };
    });
  }

  mjp::ConvShape Shape1d(int in, int out, int kernel, int stride, int length) const {
    mjp::ConvShape s;
    s.batch = rows_, s.in_c = in, s.out_c = out, s.kernel_w = kernel, s.pad_w = kernel / 2;
    s.stride = stride, s.in_w = length, s.out_w = length / stride;
    return s;
  }
  mjp::ConvShape Shape2d(int in, int out, int kernel, int stride, int size) const {
    mjp::ConvShape s = Shape1d(in, out, kernel, stride, size);
    s.batch = frames_, s.kernel_h = kernel, s.pad_h = kernel / 2;
    s.in_h = size, s.out_h = size / stride;
    return s;
  }

  void Convolutions() {
    Convolution("conv2d 64->64 k3 at 24x24", Shape2d(64, 64, 3, 1, 24), false);
    Convolution("conv2d 64->64 k3 at 24x24 + residual + ReLU", Shape2d(64, 64, 3, 1, 24), true);
    Convolution("conv2d 64->128 k3 stride 2 to 12x12", Shape2d(64, 128, 3, 2, 24), false);
    Convolution("conv1d 256->512 k1 at 8", Shape1d(256, 512, 1, 1, 8), false);
    Convolution("conv1d 256->256 k3 at 16", Shape1d(256, 256, 3, 1, 16), false);
    Convolution("conv1d 256->256 k3 stride 2 to 8", Shape1d(256, 256, 3, 2, 16), false);
    mjp::ConvShape transposed = Shape1d(256, 256, 2, 1, 8);
    transposed.phases = 2;
    Convolution("conv1d 256->256 k4 transposed to 16", transposed, false);
    Convolution("conv1d 512->512 k5 at 8", Shape1d(512, 512, 5, 1, 8), false);
    mjp::ConvShape film;  // a linear layer; 1028 padded to 1032
    film.batch = rows_, film.in_c = 1032, film.out_c = 14336;
    Convolution("FiLM product 1028->14336", film, false);
  }

  void Norm(const std::string& name, int rows, int positions, int channels, int groups,
            mjp::Activation activation, bool film, bool residual) {
    const size_t count = size_t{1} * rows * positions * channels;
    Add(name, 1e-6 * static_cast<double>(count), "M elements", [&](DeviceData& data) -> GpuWork {
      mjp::GroupNormArgs a;
      a.rows = rows, a.positions = positions, a.channels = channels, a.groups = groups;
      a.x = data.Stored(count);
      a.y = data.Stored(count);
      a.weight = data.Floats(channels);
      a.bias = data.Floats(channels);
      a.activation = activation;
      if (film) a.film = Film(data, channels);
      if (residual) a.residual = data.Stored(count);
      return [a, format = format_](cudaStream_t s) { mjp::LaunchGroupNorm(format, a, s); };
    });
  }

  mjp::FilmArgs Film(DeviceData& data, int channels) const {
    const int width = 2 * channels;
    return {data.Floats(width),
            data.Floats(size_t{1} * rows_ * width),
            data.Zeros<int>(rows_),
            1,
            width,
            0,
            channels};
  }

  // A kernel that may not take `arguments` here: then `otherwise` says what runs.
  template <class Arguments, class Supports, class LaunchKernel>
  void AddIfSupported(const std::string& name, double amount, const char* unit,
                      const Arguments& arguments, const Supports& supports,
                      const LaunchKernel& launch, const char* otherwise) {
    mjp::DeviceArena measuring;
    DeviceData none(measuring, format_);
    if (!supports(format_, arguments(none))) {
      out_.push_back(Skipped("kernels", name, otherwise));
      return;
    }
    Add(name, amount, unit, [&](DeviceData& data) -> GpuWork {
      return [a = arguments(data), format = format_, &launch](cudaStream_t s) {
        launch(format, a, s);
      };
    });
  }

  void ConvolutionNorm(const std::string& name, const mjp::ConvShape& shape, int groups) {
    const auto arguments = [&](DeviceData& data) {
      mjp::ConvGroupNormArgs a;
      a.conv.shape = shape;
      a.conv.x = data.Stored(size_t{1} * shape.batch * shape.in_h * shape.in_w * shape.in_c);
      a.conv.weight = data.Zeros<uint8_t>(mjp::PackedConvBytes(format_, shape));
      a.conv.y = data.Stored(size_t{1} * shape.Positions() * shape.out_c);
      a.conv.relu = true;
      a.groups = groups;
      a.weight = data.Floats(shape.out_c);
      a.bias = data.Floats(shape.out_c);
      return a;
    };
    AddIfSupported(name, 2e-9 * shape.Positions() * shape.out_c * shape.K(), "GFLOP", arguments,
                   mjp::ConvGroupNormSupports, mjp::LaunchConvGroupNorm,
                   "two launches run this batch");
  }

  void Norms() {
    using mjp::Activation;
    Norm("GroupNorm + ReLU, 64 at 24x24", frames_, 576, 64, 4, Activation::kRelu, false, false);
    ConvolutionNorm("conv2d + GroupNorm + ReLU, 64 k3 at 24x24", Shape2d(64, 64, 3, 1, 24), 4);
    ConvolutionNorm("conv2d + GroupNorm + ReLU, 512 k3 at 3x3", Shape2d(512, 512, 3, 1, 3), 32);
    Norm("GroupNorm, 512 at 8", rows_, 8, 512, 8, Activation::kNone, false, false);
    Norm("GroupNorm + Mish, 512 at 8", rows_, 8, 512, 8, Activation::kMish, false, false);
    Norm("GroupNorm + Mish + FiLM, 512 at 8", rows_, 8, 512, 8, Activation::kMish, true, false);
    Norm("GroupNorm + Mish + residual, 512 at 8", rows_, 8, 512, 8, Activation::kMish, false, true);
  }

  void GroupNormMaxPool() {
    const auto arguments = [this](DeviceData& data) {
      mjp::GroupNormMaxPoolArgs a;
      a.pool = {frames_, 48, 48, 24, 24, 64};
      a.pool.x = data.Stored(size_t{48} * 48 * 64 * frames_);
      a.pool.y = data.Stored(size_t{24} * 24 * 64 * frames_);
      a.weight = data.Floats(64);
      a.bias = data.Floats(64);
      return a;
    };
    AddIfSupported("GroupNorm + ReLU + max-pool, 64 to 24x24", frames_, "frames", arguments,
                   mjp::GroupNormMaxPoolSupports, mjp::LaunchGroupNormMaxPool,
                   "two launches run it on this GPU");
  }

  void Pools() {
    GroupNormMaxPool();
    Add("max-pool, 64 to 24x24", frames_, "frames", [&](DeviceData& data) -> GpuWork {
      mjp::MaxPoolArgs a;
      a.frames = frames_, a.in_h = a.in_w = 48, a.out_h = a.out_w = 24, a.channels = 64;
      a.x = data.Stored(size_t{48} * 48 * 64 * frames_);
      a.y = data.Stored(size_t{24} * 24 * 64 * frames_);
      return [a, format = format_](cudaStream_t s) { mjp::LaunchMaxPool(format, a, s); };
    });
    Add("spatial softmax, 32 at 3x3", frames_, "frames", [&](DeviceData& data) -> GpuWork {
      const float* logits = data.Floats(size_t{9} * 32 * frames_);
      const float* grid = data.Floats(18);
      void* out = data.Stored(size_t{64} * frames_);
      return [=, this](cudaStream_t s) {
        mjp::LaunchSpatialSoftmax(format_, logits, grid, frames_, 9, 32, out, s);
      };
    });
    Add("average pool, 512 at 3x3", frames_, "frames", [&](DeviceData& data) -> GpuWork {
      const void* x = data.Stored(size_t{9} * 512 * frames_);
      float* features = data.Floats(size_t{512} * frames_);
      return [=, this](cudaStream_t s) {
        mjp::LaunchAveragePool(format_, x, frames_, 9, 512, features, s);
      };
    });
  }

  void Chain() {
    const size_t count = size_t{1} * rows_ * kHorizon * kActionDim;
    for (const bool ddim : {false, true}) {
      Add(ddim ? "denoise step, DDIM" : "denoise step, DDPM", rows_, "rows",
          [&](DeviceData& data) -> GpuWork {
            mjp::DenoiseArgs a;
            a.step.clip = 1;
            a.step.ddim = ddim;
            a.step.sigma = ddim ? 0.0f : 0.1f;
            a.positions = rows_ * kHorizon, a.action_dim = kActionDim, a.pitch = kPitch;
            a.output = data.Floats(count);
            a.noise = ddim ? nullptr : data.Floats(count);
            a.x = a.next = data.Floats(count);
            a.input = data.Stored(size_t{1} * a.positions * a.pitch);
            return [a, format = format_](cudaStream_t s) { mjp::LaunchDenoise(format, a, s); };
          });
    }
    Add("Philox noise, 16x2, 100 steps", rows_, "rows", [&](DeviceData& data) -> GpuWork {
      mjp::NoiseArgs a;
      a.environments = rows_, a.elements = kHorizon * kActionDim, a.steps = kSteps;
      a.timesteps = data.Zeros<int>(kSteps);
      a.keys = data.Zeros<mjp::NoiseAddress>(rows_);
      a.keep = data.Zeros<int>(2);
      a.start = data.Floats(count);
      a.noise = data.Floats(count * kSteps);
      return [a](cudaStream_t s) { mjp::LaunchNoise(a, s); };
    });
  }

  void Pictures() {
    const std::vector<mjp::FlatScene> scenes = StartScenes(frames_);
    Add("rasteriser", frames_, "frames", [&](DeviceData& data) -> GpuWork {
      const mjp::FlatScene* device = data.Copy(scenes);
      auto* rgb = data.Zeros<uint8_t>(size_t{1} * frames_ * mjp::kPictureBytes);
      return [=, this, rasteriser = mjp::CudaRasteriser()](cudaStream_t s) {
        rasteriser.Draw(device, frames_, rgb, s);
      };
    });
    Add("prepare 96x96", frames_, "frames", [&](DeviceData& data) -> GpuWork {
      mjp::PrepareArgs a;
      a.frames = frames_;
      a.in_h = a.in_w = a.out_h = a.out_w = mjp::kPictureSize;
      a.rgb = data.Zeros<uint8_t>(size_t{1} * frames_ * mjp::kPictureBytes);
      a.table = data.Floats(3 * 256);
      a.y = data.Stored(size_t{1} * frames_ * a.out_h * a.out_w * 8);
      return [a, format = format_](cudaStream_t s) { mjp::LaunchPrepare(format, a, s); };
    });
  }

  double seconds_;
  mjp::Format format_;
  int rows_, frames_;
  BenchRows out_;
};

}  // namespace

BenchRows BenchKernelsCuda(const BenchOptions& options) {
  BenchRows rows = CudaKernels(options).Run();
  for (BenchRow& row : TransformerKernelsCuda(options)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace mjp::app

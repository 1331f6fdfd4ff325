#include "apps/bench/suites/kernels_cpu.h"

#include "apps/bench/scenes.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/prepare.h"
#include "kernels/shared/denoise.h"
#include "kernels/shared/philox.h"
#include "policy/cpu/layers.h"
#include "tasks/pusht/pictures/rasterise.h"

namespace mjp::app {
namespace {

using mjp::cpu::ConvLayer;
using mjp::cpu::OwnedFeatures;

// Numbers in [-1, 1).
std::vector<float> Numbers(size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(i * 7919 % 2048) / 1024 - 1;
  return out;
}

OwnedFeatures Maps(int batch, int height, int width, int channels, int halo_y, int halo_x) {
  OwnedFeatures maps = mjp::cpu::MakeFeatures(batch, height, width, channels, halo_y, halo_x);
  const std::vector<float> numbers = Numbers(channels);
  for (int n = 0; n < batch; ++n)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        std::copy(numbers.begin(), numbers.end(), maps.view.At(n, y, x));
  return maps;
}

class CpuKernels {
 public:
  explicit CpuKernels(const BenchOptions& options)
      : seconds_(options.seconds / 10), rows_(options.policy.batch), frames_(2 * rows_) {}

  BenchRows Run() {
    Convolutions();
    Norms();
    Pools();
    Film();
    Chain();
    Pictures();
    return std::move(out_);
  }

 private:
  void Add(const std::string& name, double items, const std::string& unit,
           const std::function<void()>& work) {
    out_.push_back(Measure("kernels", name, seconds_, items, unit, work));
  }

  void Convolution(const std::string& name, const ConvLayer& layer, int batch, int height,
                   int width) {
    const OwnedFeatures x = Maps(batch, height, width, layer.in, layer.kernel_h / 2, 2);
    const int out_h = layer.OutputSize(height, layer.kernel_h, layer.pad_h);
    const int out_w = layer.OutputSize(width, layer.kernel_w, layer.pad_w);
    const OwnedFeatures y =
        mjp::cpu::MakeFeatures(batch, layer.transposed ? 1 : out_h, out_w, layer.out, 0, 0);
    const double taps = layer.transposed ? 2 : layer.kernel_h * layer.kernel_w;
    const double operations = 2.0 * batch * y.view.height * out_w * taps * layer.in * layer.out;
    Add(name, operations * 1e-9, "GFLOP",
        [&] { Convolve(layer, x.view, y.view, WholeBlock(y.view)); });
  }

  void Convolutions() {
    const std::vector<float> weights = Numbers(size_t{512} * 512 * 5), bias = Numbers(512);
    const float *w = weights.data(), *b = bias.data();
    Convolution("conv2d 64->64 k3 at 24x24", mjp::cpu::MakeConv2d(w, b, 64, 64, 3, 1), frames_, 24,
                24);
    Convolution("conv2d 64->128 k3 stride 2 to 12x12", mjp::cpu::MakeConv2d(w, b, 128, 64, 3, 2),
                frames_, 24, 24);
    Convolution("conv1d 256->512 k1 at 8", mjp::cpu::MakeConv1d(w, b, 512, 256, 1, 1), rows_, 1, 8);
    Convolution("conv1d 256->256 k3 at 16", mjp::cpu::MakeConv1d(w, b, 256, 256, 3, 1), rows_, 1,
                16);
    Convolution("conv1d 256->256 k3 stride 2 to 8", mjp::cpu::MakeConv1d(w, b, 256, 256, 3, 2),
                rows_, 1, 16);
    Convolution("conv1d 256->256 k4 transposed to 16",
                mjp::cpu::MakeTransposedConv1d(w, b, 256, 256), rows_, 1, 8);
    Convolution("conv1d 512->512 k5 at 8", mjp::cpu::MakeConv1d(w, b, 512, 512, 5, 1), rows_, 1, 8);
  }

  void Norm(const std::string& name, int batch, int height, int width, int channels, int groups,
            mjp::Activation activation, bool film, bool residual) {
    const OwnedFeatures y = Maps(batch, height, width, channels, 0, 0);
    const OwnedFeatures beside = Maps(batch, height, width, channels, 0, 0);
    const std::vector<float> weight = Numbers(channels), terms = Numbers(size_t{2} * channels);
    const std::vector<int> zeros(batch, 0);
    mjp::cpu::GroupNormArgs args;
    args.y = y.view;
    args.groups = groups;
    args.weight = args.bias = weight.data();
    args.activation = activation;
    if (film)
      args.film = {terms.data(), terms.data(), zeros.data(), zeros.data(), 2 * channels, channels};
    if (residual) args.residual = beside.view;
    Add(name, 1e-6 * batch * height * width * channels, "M elements",
        [&] { Normalize(args, WholeBlock(y.view)); });
  }

  void Norms() {
    Norm("GroupNorm + ReLU, 64 at 24x24", frames_, 24, 24, 64, 4, mjp::Activation::kRelu, false,
         false);
    Norm("GroupNorm, 512 at 8", rows_, 1, 8, 512, 8, mjp::Activation::kNone, false, false);
    Norm("GroupNorm + Mish, 512 at 8", rows_, 1, 8, 512, 8, mjp::Activation::kMish, false, false);
    Norm("GroupNorm + Mish + FiLM, 512 at 8", rows_, 1, 8, 512, 8, mjp::Activation::kMish, true,
         false);
    Norm("GroupNorm + Mish + residual, 512 at 8", rows_, 1, 8, 512, 8, mjp::Activation::kMish,
         false, true);
  }

  void Pools() {
    const OwnedFeatures stem = Maps(frames_, 48, 48, 64, 1, 1),
                        last = Maps(frames_, 3, 3, 512, 0, 0);
    const OwnedFeatures pooled = mjp::cpu::MakeFeatures(frames_, 24, 24, 64, 0, 0);
    const OwnedFeatures logits = Maps(frames_, 3, 3, 32, 0, 0);
    const std::vector<float> grid = Numbers(18);
    std::vector<float> features(size_t{512} * frames_);
    Add("max-pool, 64 to 24x24", frames_, "frames",
        [&] { mjp::cpu::MaxPool(stem.view, pooled.view, false, 0, frames_ * pooled.view.height); });
    Add("spatial softmax, 32 at 3x3", frames_, "frames",
        [&] { mjp::cpu::SpatialSoftmax(logits.view, grid.data(), features.data(), 0, frames_); });
    Add("average pool, 512 at 3x3", frames_, "frames",
        [&] { mjp::cpu::AveragePool(last.view, features.data(), 0, frames_); });
  }

  void Film() {
    constexpr int kCond = 1028, kTerms = 14336;
    const std::vector<float> weights = Numbers(size_t{kCond} * kTerms);
    const std::vector<float> x = Numbers(size_t{1} * kCond * rows_);
    const ConvLayer layer =
        mjp::cpu::MakeLinear(weights.data(), weights.data(), kTerms, kCond, kCond);
    std::vector<float> y(size_t{1} * kTerms * rows_);
    Add("FiLM product 1028->14336", 2e-9 * rows_ * kCond * kTerms, "GFLOP",
        [&] { LinearRows(layer, x.data(), kCond, rows_, y.data(), kTerms, 0, kTerms); });
  }

  void Chain() {
    constexpr int kElements = 32;  // 16 positions of 2 actions
    std::vector<float> x = Numbers(size_t{kElements} * rows_);
    const std::vector<float> output = Numbers(x.size());
    mjp::DenoiseStep step;
    step.sqrt_a = 0.8f, step.sqrt_1ma = 0.6f, step.x0_scale = 0.5f, step.x_scale = 0.4f;
    step.eps_scale = 0.3f, step.sigma = 0.1f, step.clip = 1;
    for (const bool ddim : {false, true}) {
      step.ddim = ddim;
      Add(ddim ? "denoise step, DDIM" : "denoise step, DDPM", rows_, "rows", [&] {
        for (size_t i = 0; i < x.size(); ++i) x[i] = Denoise(step, x[i], output[i], 0.5f);
      });
    }
    uint32_t decision = 0;
    Add("Philox noise, 16x2", rows_, "rows", [&] {
      ++decision;
      for (int quad = 0; quad < kElements / 4 * rows_; ++quad)
        mjp::NormalQuad(quad / 8, decision, 0, quad % 8, &x[quad * 4]);
    });
  }

  void Pictures() {
    const std::vector<mjp::FlatScene> scenes = StartScenes(frames_);
    std::vector<uint8_t> rgb(size_t{1} * frames_ * mjp::kPictureBytes);
    Add("rasteriser", frames_, "frames",
        [&] { mjp::RasteriseCpu(scenes.data(), frames_, rgb.data()); });
    const OwnedFeatures y = mjp::cpu::MakeFeatures(frames_, 96, 96, 3, 3, 3);
    const std::vector<float> table = Numbers(3 * 256);
    mjp::cpu::PrepareArgs args;
    args.rgb = rgb.data();
    args.frame_stride = mjp::kPictureBytes;
    args.height = args.width = mjp::kPictureSize;
    args.table = table.data();
    args.y = y.view;
    Add("prepare 96x96", frames_, "frames", [&] { Prepare(args, 0, frames_, nullptr); });
  }

  double seconds_;
  int rows_, frames_;
  BenchRows out_;
};

}  // namespace

BenchRows BenchKernelsCpu(const BenchOptions& options) { return CpuKernels(options).Run(); }

}  // namespace mjp::app

#include "apps/bench/suites/transformer_cuda.h"

#include "apps/bench/gpu_timer.h"
#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/transformer/attention.cuh"
#include "kernels/cuda/transformer/token_norm.cuh"
#include "policy/cuda/format_of.h"

// The transformers' operators on the GPU, in the shapes of LeRobot's ACT (302 tokens of a 480x640
// picture) and of its diffusion transformer (32 actions; CLIP's tower on two pictures), and ACT's
// largest convolutions.

namespace mjp::app {
namespace {

constexpr int kWidth = 512, kHeads = 8, kActTokens = 302, kClipTokens = 394, kDitTokens = 32;

class TransformerKernels {
 public:
  explicit TransformerKernels(const BenchOptions& options)
      : seconds_(options.seconds / 20),
        format_(mjp::FormatOf(options.policy.precision)),
        batch_(options.policy.batch) {}

  BenchRows Run() {
    Linear("ACT", kActTokens, 512, 1536);
    Linear("ACT", kActTokens, 512, 512);
    Linear("ACT", kActTokens, 512, 3200);
    Linear("ACT", kActTokens, 3200, 512);
    Attention("ACT", kActTokens);
    Norm("ACT", kActTokens);
    Linear("CLIP", kClipTokens, 768, 2304);
    Linear("CLIP", kClipTokens, 768, 768);
    Linear("CLIP", kClipTokens, 768, 3072);
    Linear("CLIP", kClipTokens, 3072, 768);
    Linear("DiT", kDitTokens, 512, 1536);
    Linear("DiT", kDitTokens, 512, 512);
    Linear("DiT", kDitTokens, 512, 2048);
    Linear("DiT", kDitTokens, 2048, 512);
    Attention("DiT", kDitTokens);
    Norm("DiT", kDitTokens);
    Map("stem, 2x2 pixels in one", 16, 64, 4, 240, 320);
    Map("layer1", 64, 64, 3, 120, 160);
    Map("layer2", 128, 128, 3, 60, 80);
    Map("layer3", 256, 256, 3, 30, 40);
    Map("layer4", 512, 512, 3, 15, 20);
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

  void Convolution(const std::string& name, const mjp::ConvShape& shape) {
    Add(name, 2e-9 * shape.Positions() * shape.out_c * shape.K(), "GFLOP",
        [&](DeviceData& data) -> GpuWork {
          mjp::ConvArgs a;
          a.shape = shape;
          a.x = data.Stored(size_t{1} * shape.batch * shape.in_h * shape.in_w * shape.in_c);
          a.weight = data.Zeros<uint8_t>(mjp::PackedConvBytes(format_, shape));
          a.bias = data.Floats(shape.out_c);
          a.y = data.Stored(size_t{1} * shape.Positions() * shape.out_c);
          return [a, format = format_](cudaStream_t s) { mjp::LaunchConv(format, a, s); };
        });
  }

  void Linear(const std::string& network, int tokens, int in, int out) {
    mjp::ConvShape shape;
    shape.batch = batch_ * tokens, shape.in_c = in, shape.out_c = out;
    Convolution(network + " linear " + std::to_string(in) + "->" + std::to_string(out), shape);
  }

  // A convolution of stride 1 over a map of a 480x640 picture.
  void Map(const std::string& name, int in, int out, int kernel, int height, int width) {
    mjp::ConvShape shape;
    shape.batch = batch_, shape.in_c = in, shape.out_c = out;
    shape.kernel_h = shape.kernel_w = kernel, shape.pad_h = shape.pad_w = kernel / 2;
    shape.in_h = shape.out_h = height, shape.in_w = shape.out_w = width;
    Convolution("ACT conv2d " + name, shape);
  }

  void Attention(const std::string& network, int tokens) {
    const size_t rows = size_t{1} * batch_ * tokens, pitch = 3 * kWidth;
    Add(network + " attention, 8 heads of 64", 4e-9 * double(rows) * tokens * kWidth, "GFLOP",
        [&](DeviceData& data) -> GpuWork {
          mjp::TokenAttentionArgs a;
          a.sequences = batch_, a.heads = kHeads, a.head_size = kWidth / kHeads;
          a.queries = a.keys = tokens;
          const auto part = [&] {
            return mjp::DeviceRows{data.Stored(rows * pitch), static_cast<int64_t>(pitch),
                                   static_cast<int64_t>(tokens * pitch)};
          };
          a.q = part(), a.k = part(), a.v = part();
          a.out = data.Stored(rows * kWidth);
          return [a, format = format_](cudaStream_t s) { mjp::LaunchTokenAttention(format, a, s); };
        });
  }

  void Norm(const std::string& network, int tokens) {
    const size_t count = size_t{1} * batch_ * tokens * kWidth;
    Add(network + " residual and LayerNorm", 1e-6 * static_cast<double>(count), "M elements",
        [&](DeviceData& data) -> GpuWork {
          mjp::TokenNormArgs a;
          a.rows = batch_ * tokens, a.width = kWidth;
          a.x = a.normed = data.Floats(count);
          a.branch = data.Stored(count);
          a.weight = data.Floats(kWidth);
          a.bias = data.Floats(kWidth);
          a.y = data.Stored(count);
          return [a, format = format_](cudaStream_t s) { mjp::LaunchTokenNorm(format, a, s); };
        });
  }

  double seconds_;
  mjp::Format format_;
  int batch_;
  BenchRows out_;
};

}  // namespace

BenchRows TransformerKernelsCuda(const BenchOptions& options) {
  return TransformerKernels(options).Run();
}

}  // namespace mjp::app

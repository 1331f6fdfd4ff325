// On the GPU: the U-Net and the picture encoder eager and as captured graphs, with cuDNN's own
// choice of algorithms, weights channel-last in the working type.

#include <ATen/Context.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

#include "apps/bench/baseline/baseline_torch.h"
#include "policy/unet/unet_model.h"

namespace mjp::app {
namespace {

struct BaselineFormat {
  const char* name;
  at::ScalarType type;
};

class Baseline {
 public:
  Baseline(const BenchOptions& options, const BaselineFormat& format, BenchRows& rows)
      : options_(options),
        config_(mjp::UnetOf(*options.network).config),
        format_(format),
        on_device_(at::device({at::kCUDA, 0}).dtype(format.type)),
        parameters_(*options.network, 1, 0, on_device_.device(), format.type),
        network_(config_, parameters_, /*fused=*/false),
        rows_(rows) {}

  void Run() {
    const int64_t batch = options_.policy.batch, frames = batch * config_.n_obs_steps;
    x_ = at::randn({batch, config_.horizon, config_.action_dim}, on_device_);
    const at::Tensor cond = at::randn({batch, config_.CondDim()}, on_device_);
    const at::Tensor step = at::full({batch}, 50, on_device_.dtype(at::kLong));
    const std::string size = ", batch " + std::to_string(batch);
    Add("U-Net pass" + size, batch, "rows", [&] { network_.Denoise(x_, step, cond); });
    if (batch == 1) AddChunk(cond);
    if (config_.cameras.empty()) return;
    const at::Tensor pictures = at::randn(PictureShape(config_, frames), on_device_)
                                    .contiguous(at::MemoryFormat::ChannelsLast);
    Add("encoder, " + std::to_string(frames) + " frames", static_cast<double>(frames), "frames",
        [&] { network_.Encode(pictures); });
  }

 private:
  void AddChunk(const at::Tensor& cond) {
    constexpr int kSteps = 100;
    const TorchChain chain(kSteps, x_);
    const auto pass = [&](const at::Tensor& x, const at::Tensor& step) {
      return network_.Denoise(x, step, cond);
    };
    Add("chunk, 100 steps", 1, "chunks", [&] { chain.Run(pass); });
  }

  BenchRow Row(const std::string& name, const char* how) const {
    BenchRow row;
    row.suite = "baseline";
    row.name = std::string("torch, ") + how + " " + format_.name + ": " + name;
    return row;
  }

  void Add(const std::string& name, double items, const std::string& unit,
           const std::function<void()>& work) {
    const auto stream = c10::cuda::getStreamFromPool();
    const c10::cuda::CUDAStreamGuard guard(stream);
    const size_t first = rows_.size();
    rows_.push_back(Time(Row(name, "eager"), stream, work));
    at::cuda::CUDAGraph graph;
    graph.capture_begin();
    work();
    graph.capture_end();
    rows_.push_back(Time(Row(name, "graph"), stream, [&] { graph.replay(); }));
    for (size_t i = first; i < rows_.size(); ++i) rows_[i].items = items, rows_[i].unit = unit;
  }

  BenchRow Time(const BenchRow& what, const c10::cuda::CUDAStream& stream,
                const std::function<void()>& work) const {
    constexpr int kWarmUp = 3;  // cuDNN tries its algorithms in the first
    for (int i = 0; i < kWarmUp; ++i) work();
    std::vector<double> times;
    at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
    RepeatFor(options_.seconds, [&] {
      begin.record(stream);
      work();
      end.record(stream);
      end.synchronize();
      times.push_back(begin.elapsed_time(end));
    });
    BenchRow row = FromTimes(what.suite, what.name, times);
    row.device = "GPU";
    return row;
  }

  const BenchOptions& options_;
  const mjp::UnetPolicyConfig& config_;
  BaselineFormat format_;
  at::TensorOptions on_device_;
  Parameters parameters_;
  Network network_;
  at::Tensor x_;
  BenchRows& rows_;
};

}  // namespace

void AddTorchRowsCuda(const BenchOptions& options, BenchRows& rows) {
  at::globalContext().setBenchmarkCuDNN(true);
  at::globalContext().setFloat32MatmulPrecision("high");
  at::globalContext().setAllowTF32CuDNN(true);
  for (const BaselineFormat& format :
       {BaselineFormat{"tf32", at::kFloat}, BaselineFormat{"fp16", at::kHalf},
        BaselineFormat{"bf16", at::kBFloat16}}) {
    Baseline(options, format, rows).Run();
  }
}

}  // namespace mjp::app

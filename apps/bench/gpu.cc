#include <cuda_runtime_api.h>

#include <map>
#include <utility>
#include <variant>

#include "apps/bench/harness.h"
#include "kernels/cuda_check.h"
#include "policy/checkpoint.h"
#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/device_weights.h"
#include "policy/cuda/format_of.h"
#include "policy/cuda/unet_plan.h"
#include "policy/random_checkpoint.h"

// The launches of the networks at one batch, each alone and all together, as captured graphs.

namespace pusht {
namespace {

// Work captured once, so that a repetition costs one launch.
class TimedGraph {
 public:
  // Captures `copies` repetitions of `enqueue`.
  TimedGraph(int copies, const std::function<void(cudaStream_t)>& enqueue) : copies_(copies) {
    dp::CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    dp::CheckCuda(cudaEventCreate(&begin_), "event");
    dp::CheckCuda(cudaEventCreate(&end_), "event");
    cudaGraph_t graph = nullptr;
    dp::CheckCuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < copies; ++i) enqueue(stream_);
    dp::CheckCuda(cudaStreamEndCapture(stream_, &graph), "end of the capture");
    dp::CheckCuda(cudaGraphInstantiate(&graph_, graph, 0), "instantiation of the graph");
    static_cast<void>(cudaGraphDestroy(graph));
  }
  ~TimedGraph() {
    static_cast<void>(cudaGraphExecDestroy(graph_));
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
    static_cast<void>(cudaStreamDestroy(stream_));
  }
  TimedGraph(const TimedGraph&) = delete;
  TimedGraph& operator=(const TimedGraph&) = delete;

  // Milliseconds of one repetition, by the device's clock.
  double Milliseconds() {
    float elapsed = 0;
    dp::CheckCuda(cudaEventRecord(begin_, stream_), "event");
    dp::CheckCuda(cudaGraphLaunch(graph_, stream_), "launch");
    dp::CheckCuda(cudaEventRecord(end_, stream_), "event");
    dp::CheckCuda(cudaEventSynchronize(end_), "launch");
    dp::CheckCuda(cudaEventElapsedTime(&elapsed, begin_, end_), "event");
    return elapsed / copies_;
  }

 private:
  int copies_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
};

BenchRow Time(const std::string& name, double seconds, int copies,
              const std::function<void(cudaStream_t)>& enqueue) {
  constexpr int kWarmUp = 3, kLeast = 20;
  TimedGraph graph(copies, enqueue);
  for (int i = 0; i < kWarmUp; ++i) graph.Milliseconds();
  std::vector<double> times;
  for (const double end = dp::Now() + seconds; dp::Now() < end || times.size() < kLeast;)
    times.push_back(graph.Milliseconds());
  return FromTimes("gpu", name, times);
}

struct OpName {
  std::string operator()(const dp::ConvArgs& a) const {
    const dp::ConvShape& s = a.shape;
    return (s.phases == 2 ? "transposed " : "conv ") + std::to_string(s.in_c) + "->" +
           std::to_string(s.out_c) + " k" + std::to_string(s.kernel_h) + "x" +
           std::to_string(s.kernel_w) + " at " + std::to_string(s.out_h) + "x" +
           std::to_string(s.out_w) + (s.stride == 2 ? " stride 2" : "");
  }
  std::string operator()(const dp::GroupNormArgs& a) const {
    return "norm of " + std::to_string(a.channels) + " at " + std::to_string(a.positions) +
           (a.film.step_table ? " with FiLM"
            : a.residual      ? " with residual"
                              : "");
  }
  std::string operator()(const dp::MaxPoolArgs&) const { return "max-pool"; }
  std::string operator()(const dp::AveragePoolOp&) const { return "average pool"; }
  std::string operator()(const dp::SpatialSoftmaxOp&) const { return "spatial softmax"; }
  std::string operator()(const auto&) const { return "fused"; }
};

double Operations(const dp::Op& op) {
  const auto* conv = std::get_if<dp::ConvArgs>(&op);
  if (conv == nullptr) return 0;
  return 2.0 * conv->shape.Positions() * conv->shape.phases * conv->shape.out_c * conv->shape.K();
}

// One row for each kind of launch: its time beside copies of itself, its rate, how many there are.
void AddOps(const std::string& part, const std::vector<dp::Op>& ops, dp::Format format,
            const int* row_step, double seconds, std::vector<BenchRow>& rows) {
  constexpr int kCopies = 10;
  std::map<std::string, int> launches;
  for (const dp::Op& op : ops) ++launches[std::visit(OpName{}, op)];
  for (dp::Op op : ops) {
    const std::string name = std::visit(OpName{}, op);
    const int count = std::exchange(launches[name], 0);
    if (count == 0) continue;
    if (auto* norm = std::get_if<dp::GroupNormArgs>(&op); norm && norm->film.step_table)
      norm->film.row_step = row_step;
    BenchRow row = Time(part + ": " + name, seconds, kCopies,
                        [&](cudaStream_t stream) { dp::LaunchOp(format, op, stream); });
    if (Operations(op) > 0) {
      row.items = Operations(op) * 1e-9;
      row.unit = "GFLOP";
    }
    row.note = std::to_string(count) + (count == 1 ? " launch" : " launches");
    rows.push_back(row);
  }
}

}  // namespace

std::vector<BenchRow> BenchGpu(const BenchOptions& options) {
  std::string why;
  if (!dp::CudaUsable(&why)) {
    BenchRow row = FromTimes("gpu", "network", {});
    row.note = "skipped: " + why;
    return {row};
  }
  const auto checkpoint = options.checkpoint.empty() ? dp::NamedNetwork(options.network)
                                                     : dp::LoadCheckpoint(options.checkpoint);
  const dp::PolicyConfig& config = checkpoint->config;
  const int batch = options.policy.batch;
  const dp::Format format = dp::FormatOf(options.policy.precision);
  const auto weights = dp::DeviceWeights::Get(checkpoint, format, false);
  std::vector<BenchRow> rows;
  dp::DeviceArena arena;
  std::unique_ptr<dp::UnetPlan> unet;
  std::unique_ptr<dp::EncoderPlan> encoder;
  const int* row_step = nullptr;
  const int frames = batch * config.n_obs_steps;
  for (int pass = 0; pass < 2; ++pass) {  // measured, then placed
    unet = std::make_unique<dp::UnetPlan>(weights->unet(), format, config.horizon, batch, 1, arena);
    if (!config.cameras.empty()) {
      const auto& camera = config.cameras.front();
      const int height = config.encoder.crop_height ? config.encoder.crop_height : camera.height;
      const int width = config.encoder.crop_width ? config.encoder.crop_width : camera.width;
      encoder = std::make_unique<dp::EncoderPlan>(weights->encoders().front(), config.encoder,
                                                  format, frames, height, width, arena);
    }
    row_step = arena.Take<int>(batch);
    if (pass == 0) arena.Seal();
  }
  const double each = options.seconds / 20;
  rows.push_back(Time("U-Net pass, batch " + std::to_string(batch), options.seconds, 10,
                      [&](cudaStream_t stream) { unet->RunPass(row_step, stream); }));
  AddOps("U-Net", unet->ops(), format, row_step, each, rows);
  if (!encoder) return rows;
  rows.push_back(Time("encoder, " + std::to_string(frames) + " frames", options.seconds, 10,
                      [&](cudaStream_t stream) { encoder->Run(stream); }));
  AddOps("encoder", encoder->ops(), format, row_step, each, rows);
  return rows;
}

}  // namespace pusht

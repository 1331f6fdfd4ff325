#include "policy/cuda/transformer/token_launches.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/shared/stored_element.h"

namespace mjp {
namespace {

struct Launcher {
  Format format;
  const int* time;
  cudaStream_t stream;
  void operator()(const ConvArgs& a) const { LaunchConv(format, a, stream); }
  void operator()(const tma_linear::LayerArgs& a) const { tma_linear::Launch(format, a, stream); }
  void operator()(const TokenAttentionArgs& a) const { LaunchTokenAttention(format, a, stream); }
  void operator()(TokenNormArgs a) const {
    a.terms.time = time;
    LaunchTokenNorm(format, a, stream);
  }
  void operator()(const TokensArgs& a) const { LaunchTokens(format, a, stream); }
};

}  // namespace

void TokenLaunches::Add(const Args& args) {
  launches_.push_back({args, std::exchange(next_is_for_traces_, false), {}});
}

void TokenLaunches::Linear(const DeviceConv& layer, const void* x, int rows, void* y,
                           TokenActivation activation, bool fp32, const float* row_bias,
                           int period) {
  ConvArgs a;
  a.shape = layer.shape;
  a.shape.batch = rows;
  a.x = x;
  a.weight = layer.weight;
  a.bias = layer.bias;
  a.row_bias = row_bias;
  a.row_period = period;
  a.activation = activation;
  a.y = y;
  a.y_fp32 = fp32;
  Add(a);
}

void TokenLaunches::Show(const std::string& name, const void* data, bool fp32, int64_t rows,
                         int64_t width) {
  launches_.back().shown.push_back({name, data, fp32, rows, width});
}

int TokenLaunches::size() const {
  return static_cast<int>(std::ranges::count(launches_, false, &Launch::for_traces));
}

void TokenLaunches::Enqueue(const Launch& launch, const int* time, cudaStream_t stream) const {
  std::visit(Launcher{format_, time, stream}, launch.args);
}

void TokenLaunches::Run(cudaStream_t stream, const int* time) const {
  for (const Launch& launch : launches_)
    if (!launch.for_traces) Enqueue(launch, time, stream);
}

void TokenLaunches::RunTraced(const Tap& tap, cudaStream_t stream) const {
  for (const Launch& launch : launches_) {
    Enqueue(launch, nullptr, stream);
    for (const Shown& shown : launch.shown) {
      const std::vector<float> values = FetchValues(shown.fp32 ? Format::kFp32 : format_,
                                                    shown.data, shown.rows * shown.width, stream);
      tap(shown.name, values.data(), shown.rows, shown.width);
    }
  }
}

std::vector<float> FetchValues(Format format, const void* device, size_t count,
                               cudaStream_t stream) {
  std::vector<uint8_t> stored(count * FormatBytes(format));
  CheckCuda(cudaMemcpyAsync(stored.data(), device, stored.size(), cudaMemcpyDeviceToHost, stream),
            "copy of the trace");
  CheckCuda(cudaStreamSynchronize(stream), "a launch of the transformer");
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = LoadElement(format, stored.data() + i * FormatBytes(format));
  return values;
}

}  // namespace mjp

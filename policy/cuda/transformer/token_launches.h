#ifndef POLICY_CUDA_TRANSFORMER_TOKEN_LAUNCHES_H_
#define POLICY_CUDA_TRANSFORMER_TOKEN_LAUNCHES_H_

#include <string>
#include <variant>
#include <vector>

#include "kernels/cuda/tma_linear/tma_linear.cuh"
#include "kernels/cuda/transformer/attention.cuh"
#include "kernels/cuda/transformer/token_norm.cuh"
#include "kernels/cuda/transformer/tokens.cuh"
#include "policy/cuda/layers.h"
#include "policy/dit/tap.h"

// What the transformers on the GPU share.

namespace mjp {

struct DeviceLayerNorm {
  const float *weight = nullptr, *bias = nullptr;
};

// A transformer's launches in their order, some with a name under which a trace shows what they
// leave.
class TokenLaunches {
 public:
  explicit TokenLaunches(Format format) : format_(format) {}

  // y (rows, out) = activation(x (rows, in) W + b), in storage or, with fp32, in float32; row_bias
  // (period, out), where it is not null, is added to row r % period.
  void Linear(const DeviceConv& layer, const void* x, int rows, void* y,
              TokenActivation activation = TokenActivation::kNone, bool fp32 = false,
              const float* row_bias = nullptr, int period = 1);
  using Args =
      std::variant<ConvArgs, tma_linear::LayerArgs, TokenAttentionArgs, TokenNormArgs, TokensArgs>;
  void Add(const Args& args);
  // Run leaves the next launch out: it makes what a trace alone shows.
  void NextIsForTraces() { next_is_for_traces_ = true; }
  // After the last launch, `data` (rows, width) in storage or in float32 is `name`.
  void Show(const std::string& name, const void* data, bool fp32, int64_t rows, int64_t width);

  int size() const;  // of what Run launches
  // `time`: TokenTerms::time of norms with terms.
  void Run(cudaStream_t stream, const int* time = nullptr) const;
  // The same with every named value shown, waiting for it: the slow path of tests.
  void RunTraced(const Tap& tap, cudaStream_t stream) const;

 private:
  struct Shown {
    std::string name;
    const void* data;
    bool fp32;
    int64_t rows, width;
  };
  struct Launch {
    Args args;
    bool for_traces;
    std::vector<Shown> shown;
  };
  void Enqueue(const Launch& launch, const int* time, cudaStream_t stream) const;

  Format format_;
  bool next_is_for_traces_ = false;
  std::vector<Launch> launches_;
};

// Device values of `format`, or float32, as float32 on the host. Waits for `stream`.
std::vector<float> FetchValues(Format format, const void* device, size_t count,
                               cudaStream_t stream);

}  // namespace mjp

#endif  // POLICY_CUDA_TRANSFORMER_TOKEN_LAUNCHES_H_

#ifndef POLICY_CUDA_TRANSFORMER_TOKEN_STREAM_H_
#define POLICY_CUDA_TRANSFORMER_TOKEN_STREAM_H_

#include <string>
#include <vector>

#include "policy/checkpoint/layer_norm_weights.h"
#include "policy/cuda/transformer/token_launches.h"

// The residual stream of a transformer on the GPU. Each norm is a launch, or it is folded into the
// layers before and after it, where kernels/cuda/tma_linear runs them.

namespace mjp {

constexpr float kLayerNormEpsilon = 1e-5f;  // PyTorch's

// A linear layer that reads a norm of the stream.
struct DeviceNormedLinear {
  DeviceConv layer;                 // without bias where row_bias has it
  const float* row_bias = nullptr;  // (rows, out): the bias of each position; or null
  int rows = 1;
  // The norm before it, folded: (out) each. Null where it reads no norm, and where none is folded.
  const float *weight_sums = nullptr, *folded_bias = nullptr;
};

DeviceLayerNorm LoadLayerNorm(LayerLoader& loader, const LayerNormWeights& norm);
// `norm`: the one that the layer reads; null: another input.
DeviceNormedLinear LoadNormedLinear(LayerLoader& loader, const Linear& linear,
                                    const LayerNormWeights* norm);

// Whether norms can be folded into all of these layers of `rows` tokens on this GPU.
bool CanFoldNorms(Format format, int rows, const std::vector<const DeviceConv*>& layers);

class TokenStream {
 public:
  struct Config {
    int rows, width;
    float epsilon;
    bool norms_after;  // the norm of a sum is the new x (post-norm)
    bool folds;        // norms into layers: only where CanFoldNorms
  };
  TokenStream(const Config& config, Format format, TokenLaunches& launches, DeviceArena& arena);

  int rows() const { return config_.rows; }
  bool folds() const { return config_.folds; }
  // (rows, width), to be filled before the first layer: float32, and the operand of a first layer
  // that reads no norm. x() is what later layers added up; with norms_after and folds, before the
  // norm.
  float* x() const { return x_; }
  void* y() const { return y_; }
  // x is row r % from_rows of `from` at first.
  void StartFrom(const float* from, int from_rows);

  // What the next layers read is norm(x); with norms_after it is the new x.
  void Norm(const DeviceLayerNorm& norm);
  // x += layer(in), then Norm(norm). Traces show the layer's answer as `name`; empty: they do not.
  void AddAndNorm(const DeviceConv& layer, const void* in, const DeviceLayerNorm& norm,
                  const std::string& name = {});
  // The new x is norm(x + layer(in)), and what the next layers read is the norm `second` of it.
  // Before all other layers, without norms_after.
  void AddAndNormTwice(const DeviceConv& layer, const void* in, const DeviceLayerNorm& norm,
                       const DeviceLayerNorm& second);
  // out = activation(layer(the norm))
  void Linear(const DeviceNormedLinear& layer, void* out,
              TokenActivation activation = TokenActivation::kNone);
  // The norm in storage, for readers that are no such layers.
  const void* Normed();
  // Traces show x, or the norm.
  void ShowX(const std::string& name) { Show(name, config_.norms_after, x_, true); }
  void ShowNorm(const std::string& name) { Show(name, true, y_, false); }

  // Of x as it is.
  TokenNormArgs NormArgs(const DeviceLayerNorm& norm) const;

 private:
  void AddFolded(const DeviceConv& layer, const void* in, const DeviceLayerNorm& norm);
  void Show(const std::string& name, bool normed, const void* data, bool fp32);

  const Config config_;
  const Format format_;
  TokenLaunches& launches_;
  float* x_;
  void* y_;
  void* branch_ = nullptr;
  const float* from_;  // where x is at the moment: x_, or from_rows_ rows for all
  int from_rows_ = 0;
  // With folds alone: moments of x before its norm, of this sum and of the next one, and x as
  // traces show it.
  float2 *moments_ = nullptr, *next_moments_ = nullptr;
  float* shown_ = nullptr;
  DeviceLayerNorm folded_;  // the norm that x and y have yet to pass; null: none
};

}  // namespace mjp

#endif  // POLICY_CUDA_TRANSFORMER_TOKEN_STREAM_H_

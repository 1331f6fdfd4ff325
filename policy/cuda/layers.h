#ifndef POLICY_CUDA_LAYERS_H_
#define POLICY_CUDA_LAYERS_H_

#include <variant>
#include <vector>

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/conv/feature_head.cuh"
#include "kernels/cuda/conv/stem_max_pool.cuh"
#include "kernels/cuda/encoder_kernel/encoder_kernel.cuh"
#include "kernels/cuda/norm/conv_group_norm.cuh"
#include "kernels/cuda/norm/group_norm.cuh"
#include "kernels/cuda/norm/group_norm_max_pool.cuh"
#include "kernels/cuda/norm/pool.cuh"
#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "policy/checkpoint/network.h"
#include "policy/cuda/arena.h"

// Layers on the device: packed weights, and the plan of launches that uses them.

namespace mjp {

// A convolution or linear layer: its shape without batch and sizes, and its packed weights.
struct DeviceConv {
  ConvShape shape;
  const void* weight = nullptr;
  const float* bias = nullptr;
};
// A convolution of the U-Net as the persistent kernels have it, with the block's 1x1 shortcut.
struct DeviceNormConv {
  NormConvShape shape;
  const void* weight = nullptr;
  const float *bias = nullptr, *shortcut_bias = nullptr;
};
struct DeviceNorm {
  int groups = 0;  // 0: no norm here
  const float *weight = nullptr, *bias = nullptr;
};

// Channels as the kernels store them.
constexpr int PaddedChannels(int channels) { return (channels + 7) / 8 * 8; }

// Packs layers into an arena; while it measures, only sizes are computed.
class LayerLoader {
 public:
  LayerLoader(DeviceArena& arena, Format format) : arena_(arena), format_(format) {}

  DeviceConv Conv1d(const Conv& conv, int stride, int pad);
  DeviceConv Transposed1d(const Conv& conv);  // k4 s2 p1
  DeviceConv Conv2d(const Conv& conv, int stride, int pad);
  DeviceConv Dense(const Linear& linear);
  // The same packed for the persistent kernels; shortcut may be null.
  DeviceNormConv NormConv1d(const Conv& conv, int stride, int pad, const Conv* shortcut);
  DeviceNormConv NormConvTransposed1d(const Conv& conv);
  // Weights (out, in, k) as float32 operands of the format in the order (k, in, out), or as given.
  const float* FirstWeights(const Tensor& weight);
  const float* Operands(const std::vector<float>& values);
  DeviceNorm Norm(const GroupNorm& norm);
  const float* Floats(const std::vector<float>& values);
  // In the format's storage.
  const void* Stored(const std::vector<float>& values);
  // (cameras, 3, 256): the normalised values of the bytes of each camera's channels.
  const float* PictureTables(const std::vector<FeatureStats>& cameras);
  Format format() const { return format_; }
  bool measuring() const { return arena_.measuring(); }

 private:
  DeviceConv Pack(ConvShape shape, const Tensor& weight, const Tensor& bias, int in_channels);
  DeviceNormConv PackNormConv(const NormConvShape& shape, const Conv& conv, const Conv* shortcut);
  DeviceArena& arena_;
  Format format_;
};

// One launch of a plan.
struct AveragePoolOp {
  const void* x;
  int frames, cells, channels;
  float* features;
};
struct SpatialSoftmaxOp {
  const float *logits, *pos_grid;
  int frames, cells, keypoints;
  void* out;
};
using Op = std::variant<ConvArgs, ConvGroupNormArgs, GroupNormArgs, MaxPoolArgs,
                        GroupNormMaxPoolArgs, StemMaxPoolArgs, AveragePoolOp, SpatialSoftmaxOp,
                        FeatureHeadArgs, encoder_kernel::Args>;

// Enqueues `op`.
void LaunchOp(Format format, const Op& op, cudaStream_t stream);

}  // namespace mjp

#endif  // POLICY_CUDA_LAYERS_H_

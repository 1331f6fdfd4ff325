#ifndef KERNELS_CUDA_CONV_CONV_CUH_
#define KERNELS_CUDA_CONV_CONV_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/shared/format.h"
#include "kernels/shared/token_activation.h"

// Convolutions of one and two dimensions, transposed ones and linear layers on the GPU, as one
// implicit matrix product: y[position][out channel] = sum over (tap, in channel) of w x.

namespace mjp {

// Channel-last activations (batch, h, w, c). One-dimensional: in_h = out_h = kernel_h = 1.
// A linear layer: all heights, widths and kernels 1.
struct ConvShape {
  int batch = 1;
  int in_h = 1, in_w = 1, in_c = 8;  // in_c: a multiple of 8
  int first_c = 0;                   // > 0: channels [0, first_c) come from x, the rest from x2
  int out_h = 1, out_w = 1, out_c = 1;
  int kernel_h = 1, kernel_w = 1, stride = 1, pad_h = 0, pad_w = 0;
  bool upsample2x = false;  // nearest: in_h, in_w are of the larger map, which is never stored
  int phases = 1;  // 2: transposed k4 s2 p1 as two k2 ones; phase p makes positions 2 l + p

  int Positions() const { return batch * out_h * out_w; }
  int K() const { return kernel_h * kernel_w * in_c; }
  // Whether it is a linear layer of `batch` rows.
  bool IsLinear() const {
    return kernel_h * kernel_w * in_h * in_w * out_h * out_w * stride * phases == 1 &&
           pad_h + pad_w + first_c == 0 && !upsample2x;
  }
};

// How a shape runs. Depends on the shape and the GPU alone.
struct ConvConfig {
  int block_m = 64, block_n = 64;  // out channels x positions of a block
  int split_k = 1;                 // blocks of a cluster that share one tile's sum
};

struct ConvArgs {
  ConvShape shape;
  const void *x = nullptr, *x2 = nullptr;  // (batch, in_h, in_w, c) in the format's storage type
  const void* weight = nullptr;            // packed by PackConvWeights
  const float* bias = nullptr;             // (out_c) or null
  const float* row_bias = nullptr;         // (row_period, out_c), added likewise; or null
  int row_period = 1;                      // position n takes row n % row_period
  TokenActivation activation = TokenActivation::kNone;  // of the sum with both
  const void* residual = nullptr;                       // like y, added before the ReLU; or null
  bool relu = false;
  void* y = nullptr;  // (batch, out_h, out_w * phases, out_c)
  bool y_fp32 = false;
};

ConvConfig ChooseConvConfig(const ConvShape& shape, const GpuTraits& gpu);

// Enqueues the convolution. Throws Error for a shape that no kernel supports.
void LaunchConv(Format format, const ConvArgs& args, cudaStream_t stream);

// Float32 weights (out, in, kh, kw), or (in, out, 4) where phases = 2, as the kernel reads them:
// [phase][out padded][tap][in padded], k padded to 128 bytes, converted to the format's storage.
// `in_c` of the shape may exceed the tensor's `in` (zeros fill it).
std::vector<uint8_t> PackConvWeights(Format format, const ConvShape& shape, const float* weight,
                                     int in_channels);
// Bytes that PackConvWeights returns.
size_t PackedConvBytes(Format format, const ConvShape& shape);

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_CONV_CUH_

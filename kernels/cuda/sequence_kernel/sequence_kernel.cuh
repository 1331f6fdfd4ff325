#ifndef KERNELS_CUDA_SEQUENCE_KERNEL_SEQUENCE_KERNEL_CUH_
#define KERNELS_CUDA_SEQUENCE_KERNEL_SEQUENCE_KERNEL_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/norm/group_norm.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/cuda/sampler/timestamp.cuh"
#include "kernels/shared/denoise.h"
#include "kernels/shared/format.h"
#include "kernels/shared/host_device.h"

// The sequence kernel: all layers of a diffusion transformer's pass, and all steps of a chain, in
// one launch, with a cluster of CTAs for each short sequence. Sequences never wait for each other.
//
// Blocks as Peebles and Xie (2023) have them, LayerNorm without weights:
//   x += gate1 * (attention(norm(x) (1 + scale1) + shift1) Wo + bo)
//   x += gate2 * (gelu(norm(x) (1 + scale2) + shift2) W1 + b1) W2 + b2)

namespace mjp::sequence_kernel {

inline constexpr int kCtaColumns = 64;  // of the width, of each CTA: one or more heads
inline constexpr int kWarps = 8, kThreads = 32 * kWarps;
inline constexpr int kMostLength = 32;   // tokens
inline constexpr int kMostActions = 64;  // of a token
inline constexpr int kBlockTerms = 6;    // shift, scale, gate of the attention; of the MLP

struct Shape {
  int width = 0, heads = 0, layers = 0;
  int length = 0, action_dim = 0;

  MJP_HOST_DEVICE int Ctas() const { return width / kCtaColumns; }
  MJP_HOST_DEVICE int HeadSize() const { return width / heads; }
};

// Whether it runs here: 16-bit formats, width 64, 128, 256 or 512, heads of 16, 32 or 64, at most
// 32 tokens and 64 actions, a GPU and code with clusters of eight blocks, the shared memory.
bool Supports(Format format, const Shape& shape, const GpuTraits& gpu);

// One block's layers as PackConvWeights packs linear layers, and their biases; device memory.
struct BlockWeights {
  const void *qkv = nullptr, *out = nullptr, *mlp1 = nullptr, *mlp2 = nullptr;
  const float *qkv_bias = nullptr, *out_bias = nullptr, *mlp1_bias = nullptr, *mlp2_bias = nullptr;
};

// Bytes of the weights as the kernel reads them, and their packing from `blocks` (layers), device
// memory, on the default stream.
size_t PackedBytes(const Shape& shape);
void LaunchPackWeights(const Shape& shape, const BlockWeights* blocks, void* packed);

// A pass over `rows` sequences of given timesteps, or the steps [begin, end) of a chain.
struct Args {
  Shape shape;
  int rows = 0;
  const void* weights = nullptr;                                 // PackedBytes()
  const void *input_weight = nullptr, *output_weight = nullptr;  // by PackConvWeights
  const float* input_bias = nullptr;                 // (length, width): with the position embedding
  const float* output_bias = nullptr;                // (action_dim)
  const float *cosines = nullptr, *sines = nullptr;  // (length, head size / 2); null: not rotated
  FilmTables terms;  // of all blocks, each kBlockTerms * width: shift, scale, gate, ...
  float epsilon = 1e-6f;
  float* output = nullptr;  // (rows, length * action_dim): of the last pass
  // A pass:
  const void* x_storage = nullptr;  // (rows, length, storage_pitch); null: a chain
  int storage_pitch = 0;
  const int* row_step = nullptr;  // (rows)
  // A chain:
  const DenoiseStep* schedule = nullptr;  // (steps)
  const float* noise = nullptr;           // (steps, rows, length * action_dim); null: DDIM
  float* x = nullptr;                     // (rows, length * action_dim); in and out
  int begin = 0, end = 1;
  TimestampSpan timestamps;  // entry i: the end of step begin + i; or empty
  // Across clusters, in place of `weights`:
  const BlockWeights* blocks = nullptr;  // (layers), device memory
  void* mailboxes = nullptr;  // MailboxBytes(); zeros before the first launch, and left so
  int* timed_out = nullptr;   // becomes 1 where a wait lasted seconds: what it made is worthless
};

// Enqueues a pass or a chain, of a supported shape. Throws Error.
void LaunchSequenceKernel(Format format, const Args& args, cudaStream_t stream);

// The same with eight clusters for each sequence. Whether it runs here: `Supports`, a width of 512,
// cooperative launches, and multiprocessors enough for all clusters at once.
bool SupportsClusters(Format format, const Shape& shape, int rows, const GpuTraits& gpu);
size_t MailboxBytes(const Shape& shape, int rows);
void LaunchSequenceKernelAcrossClusters(Format format, const Args& args, cudaStream_t stream);

}  // namespace mjp::sequence_kernel

#endif  // KERNELS_CUDA_SEQUENCE_KERNEL_SEQUENCE_KERNEL_CUH_

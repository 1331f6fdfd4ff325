#ifndef KERNELS_CUDA_ENCODER_KERNEL_ENCODER_KERNEL_CUH_
#define KERNELS_CUDA_ENCODER_KERNEL_ENCODER_KERNEL_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/shared/format.h"
#include "kernels/shared/host_device.h"

// All residual blocks of a picture's encoder, and a stem without a pool, in one launch: a cluster
// of thread blocks (CTAs) takes a picture through all layers, and the maps stay in its shared
// memory. README.md has the contract.

namespace mjp::encoder_kernel {

inline constexpr int kWarps = 8, kThreads = 32 * kWarps;
inline constexpr int kMostCtas = 16;    // of a cluster
inline constexpr int kMostLayers = 40;  // convolutions
// Vectors of 8 channels at a position that a thread finishes: the kernel is compiled for both.
inline constexpr int kFewVectors = 2, kMostVectors = 3;
inline constexpr int kMostGroups = 4;  // norm groups of a CTA's channels
inline constexpr int kRingChunks = 6;  // of a warp
inline constexpr int kChunkRows = 16, kChunkK = 64;
inline constexpr int kChunkBytes = kChunkRows * kChunkK * 2;
inline constexpr int kTapStep = 16;  // channels that a product takes at once
// x / y is x times Inverse(y), shifted by these bits, where x * y is below 2 to the power of them.
inline constexpr int kInverseBits = 20;
inline constexpr int kTileChannels = 16, kTilePositions = 16;  // of a warp's product

// A convolution (3x3, or 1x1 for a shortcut) with its group normalisation. A CTA has Tiles() x 16
// out channels, whole norm groups of them, in `rows` rows of the map: part rank % parts of the
// channels, slice rank / parts of the rows; beyond `slices` it has nothing to do.
struct Layer {
  const void* weight = nullptr;  // packed by PackConvWeights
  const float *scale = nullptr, *shift = nullptr;
  // of out_w, of the in rows from slice to slice, and of in_c / 16 (kInverseBits)
  uint32_t width_inverse = 0, step_inverse = 0, channels_inverse = 0;
  int16_t in_h = 0, in_w = 0, in_c = 0, out_h = 0, out_w = 0, out_c = 0;
  int16_t chunks = 0;  // of 64 k
  int8_t kernel = 3, stride = 1;
  int8_t group_vectors = 2;  // channels of a norm group / 8
  int8_t parts = 1, slices = 1, rows = 1;
  int8_t part = 0, slice = 0;   // of this CTA, in its own copy
  int8_t tiles_log2 = 0;        // tiles of 16 channels: 1 or 2
  int8_t pairs = 1;             // of 16 positions, of a warp
  int8_t n_split_log2 = 0;      // groups of warps that share the positions; the others share k
  bool reads_residual = false;  // the block's residual is its input
  bool is_shortcut = false;     // its result is the block's residual, and goes nowhere
  bool adds_residual = false;
  bool relu = false;
  bool clears_border = true;  // of its input: zeros do not stand there from the layer before

  MJP_HOST_DEVICE int Tiles() const { return 1 << tiles_log2; }
  MJP_HOST_DEVICE int KSplit() const { return kWarps >> n_split_log2; }
  MJP_HOST_DEVICE int NSplit() const { return 1 << n_split_log2; }
  MJP_HOST_DEVICE int Parts() const { return KSplit() < chunks ? KSplit() : chunks; }  // of k
};

// The input of a layer in shared memory, its border included.
MJP_HOST_DEVICE inline int PixelBytes(const Layer& l) { return l.in_c * 2 + 16; }
MJP_HOST_DEVICE inline int RowPixels(const Layer& l) { return l.in_w + 2; }
// Floats from one position to the next in the sums, free of bank conflicts.
MJP_HOST_DEVICE constexpr int SumPitch(int tiles) { return tiles * kTileChannels + 4; }

// Where things stand in a CTA's shared memory, bytes; the ring of weights is first. Moments of the
// norms and the table of layers are in kTableBytes of their own.
struct SharedLayout {
  int input = 0, sums = 0, end = 0;
};
inline constexpr int kTableBytes = 6144;

struct Args {
  const void* x = nullptr;  // (pictures, in_h, in_w, in_c) of the first layer, in storage
  void* y = nullptr;        // (pictures, out_h, out_w, out_c) of the last
  // Null, or where CanAverage: means over the last map's positions, (pictures, out_c), in place of
  // y
  float* features = nullptr;
  int pictures = 0, ctas = kMostCtas, layer_count = 0;
  int thread_vectors = kFewVectors;  // in the layer that has most
  SharedLayout shared;
  Layer layers[kMostLayers];
};

// Whether a CTA has all positions of its channels in the last map, and so their means.
inline bool CanAverage(const Args& args) { return args.layers[args.layer_count - 1].slices == 1; }

// Clusters that run at once on the current device with `args`, as its occupancy calculator says; 0:
// none. Throws Error.
int ClustersAtOnce(Format format, const Args& args);

// Enqueues it: fp16 or bf16. Throws Error.
void LaunchEncoderKernel(Format format, const Args& args, cudaStream_t stream);

}  // namespace mjp::encoder_kernel

#endif  // KERNELS_CUDA_ENCODER_KERNEL_ENCODER_KERNEL_CUH_

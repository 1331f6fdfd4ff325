#ifndef KERNELS_LADDER_MEGAKERNEL_CUH_
#define KERNELS_LADDER_MEGAKERNEL_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/primitives/cuda_raii.h"

// How a chain of layers became one kernel, from a launch per layer to what the megakernel does
// (kernels/cuda/megakernel/README.md), a rung per file. A layer is y = Mish(GroupNorm(conv(x))),
// 512 channels at 8 positions: half of a U-Net block, without its FiLM and residual. The headers in
// the order of the rungs that need them first: megakernel_layer.cuh (1), megakernel_mail.cuh (4),
// megakernel_split_k.cuh (5), megakernel_roles.cuh (7). `mjpolicy bench ladder` times the rungs
// side by side; nothing but the bench and the tests uses them.

namespace mjp::ladder {

inline constexpr int kChainChannels = 512, kChainLength = 8, kChainTaps = 5, kChainGroups = 8;
inline constexpr int kChainRows = 16;   // of a batch
inline constexpr int kChainSlices = 8;  // of the in channels, rungs 5 to 8
inline constexpr int kRowWords = kChainChannels * kChainLength / 2;  // 32-bit words of a row
inline constexpr int kTileWords = kRowWords / kChainGroups;          // of a norm group of a row

// fp16 values travel as words: two positions of a channel. Rows are (512 channels, 4 words).
struct ChainArgs {
  int layers = 1;
  int batches = 1;                 // of 16 rows; rung 8 takes 1 or 2, the others 1
  const uint32_t* x = nullptr;     // (rows, row)
  const uint4* weights = nullptr;  // (layers): each as PackWeightFragments leaves it
  const float* bias = nullptr;     // (layers, 512)
  const float *scale = nullptr, *shift = nullptr;  // of the norm, likewise
  uint32_t* y = nullptr;                           // (rows, row)
  uint32_t* activations = nullptr;                 // rungs 1 to 3: (2 buffers, rows, row)
  // Rungs 4 to 8: words with the epoch that wrote them, zeros before the first launch. Each layer
  // is an epoch; `epoch` counts those that ever ran on this memory.
  uint64_t* mail = nullptr;  // (2 buffers, rows, row)
  uint64_t* sums = nullptr;  // (2 buffers, rows, groups, slices, tile): partial sums
  uint32_t epoch = 0;
  int* timed_out = nullptr;  // becomes 1 where a value did not come for seconds
};

// Each enqueues a chain; GraphOfLaunches returns a graph that does. Throws Error. Those from rung 3
// on need all 128 blocks resident at once.
void ChainOfLaunches(const ChainArgs& args, cudaStream_t stream);  // megakernel_1_launches.cu
CudaGraphExec GraphOfLaunches(const ChainArgs& args);              // megakernel_2_graph.cu
void ChainByGridBarrier(const ChainArgs& args,
                        cudaStream_t stream);                        // megakernel_3_grid_barrier.cu
void ChainByMail(const ChainArgs& args, cudaStream_t stream);        // megakernel_4_mail.cu
void ChainBySplitK(const ChainArgs& args, cudaStream_t stream);      // megakernel_5_split_k.cu
void ChainByPrefetch(const ChainArgs& args, cudaStream_t stream);    // megakernel_6_prefetch.cu
void ChainByRoles(const ChainArgs& args, cudaStream_t stream);       // megakernel_7_roles.cu
void ChainByRowBatches(const ChainArgs& args, cudaStream_t stream);  // megakernel_8_row_batches.cu

}  // namespace mjp::ladder

#endif  // KERNELS_LADDER_MEGAKERNEL_CUH_

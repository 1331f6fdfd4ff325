// Packs a transformer's weights into the streams that the sequence kernel's warps read: a warp of
// this kernel for each group of 8 out channels x 64 of k, in the order of its products. A lane's
// 32 bytes of a group are its operands of four mma.sync.

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/sequence_kernel/cta.cuh"

namespace mjp::sequence_kernel {
namespace {

// Where a group's first out channel of a lane stands, and from which k on.
struct Source {
  const void* weight;
  int row, k, pitch;
};
__device__ Source SourceOf(const Shape& s, const BlockWeights& w, int cta, int warp, int group,
                           int n) {
  const int ctas = s.Ctas();
  constexpr int kQkv = kQkvColumns / kGroupOut / kWarps;
  constexpr int kHidden = kHiddenColumns / kGroupOut / kWarps;
  if (group < kQkv * ctas) {
    const int c = (warp * kQkv + group % kQkv) * kGroupOut + n;
    return {w.qkv, QkvRow(s, cta, c), group / kQkv * kGroupK, s.width};
  }
  group -= kQkv * ctas;
  if (group < ctas)
    return {w.out, (warp * ctas + group) * kGroupOut + n, cta * kCtaColumns, s.width};
  group -= ctas;
  if (group < kHidden * ctas) {
    const int c = (warp * kHidden + group % kHidden) * kGroupOut + n;
    return {w.mlp1, cta * kHiddenColumns + c, group / kHidden * kGroupK, s.width};
  }
  group -= kHidden * ctas;
  return {w.mlp2, (warp * ctas + group % ctas) * kGroupOut + n,
          cta * kHiddenColumns + group / ctas * kGroupK, 4 * s.width};
}

// grid: (groups of a block, warps, CTAs x blocks)
__global__ void __launch_bounds__(32)
    PackGroups(const Shape s, const BlockWeights* blocks, uint32_t* packed) {
  const int group = blockIdx.x, warp = blockIdx.y, lane = threadIdx.x;
  const int cta = blockIdx.z % s.Ctas(), block = blockIdx.z / s.Ctas();
  const Source from = SourceOf(s, blocks[block], cta, warp, group, lane / 4);
  const auto* row = static_cast<const uint16_t*>(from.weight) +
                    static_cast<size_t>(from.row) * from.pitch + from.k;
  const size_t stream = (static_cast<size_t>(cta) * kWarps + warp) * s.layers + block;
  uint32_t* to = packed + (stream * gridDim.x + group) * (kGroupBytes / 4);
  for (int v = 0; v < 8; ++v) {
    const int k = v / 2 * 16 + v % 2 * 8 + 2 * (lane & 3);
    to[v / 4 * (kGroupBytes / 8) + lane * 4 + v % 4] = row[k] | static_cast<uint32_t>(row[k + 1])
                                                                    << 16;
  }
}

// grid: (blocks)
__global__ void __launch_bounds__(kThreads)
    PackBiases(const Shape s, const BlockWeights* blocks, float* packed) {
  const BlockWeights w = blocks[blockIdx.x];
  const int ctas = s.Ctas(), each = kQkvColumns + kHiddenColumns;
  float* to = packed + static_cast<size_t>(blockIdx.x) * BiasFloats(ctas);
  for (int i = threadIdx.x; i < s.width; i += kThreads) {
    to[i] = w.out_bias[i];
    to[s.width + i] = w.mlp2_bias[i];
  }
  for (int i = threadIdx.x; i < ctas * each; i += kThreads) {
    const int cta = i / each, c = i % each;
    to[2 * s.width + i] = c < kQkvColumns ? w.qkv_bias[QkvRow(s, cta, c)]
                                          : w.mlp1_bias[cta * kHiddenColumns + c - kQkvColumns];
  }
}

}  // namespace

size_t PackedBytes(const Shape& s) {
  return WeightBytes(s) + sizeof(float) * s.layers * BiasFloats(s.Ctas());
}

void LaunchPackWeights(const Shape& s, const BlockWeights* blocks, void* packed) {
  const dim3 grid(BlockGroups(s.Ctas()), kWarps, s.Ctas() * s.layers);
  PackGroups<<<grid, 32>>>(s, blocks, static_cast<uint32_t*>(packed));
  auto* biases = reinterpret_cast<float*>(static_cast<uint8_t*>(packed) + WeightBytes(s));
  PackBiases<<<s.layers, kThreads>>>(s, blocks, biases);
  CheckCuda(cudaGetLastError(), "packing of weights");
}

}  // namespace mjp::sequence_kernel

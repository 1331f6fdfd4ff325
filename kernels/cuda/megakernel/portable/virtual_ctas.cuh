#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_VIRTUAL_CTAS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_VIRTUAL_CTAS_CUH_

#include "kernels/cuda/megakernel/portable/portable.cuh"
#include "kernels/cuda/megakernel/sampler_step.cuh"
#include "kernels/cuda/megakernel/weight_pipeline.cuh"

// What the virtual CTAs of a CTA take of each layer: their tables, made at the start of a launch.

namespace mjp::megakernel {

// A layer as a virtual CTA sees it.
struct PortableDescriptor : LayerDescriptor {
  int tile_rows_log2;   // rows of its GEMM tile; of a pair's tile, those of the other one follow
  bool repeats_input;   // its GEMM tile has the input of the virtual CTA before
  int row_tiles;        // as of RowTiles
  int input_positions;  // as of InputPositions

  // The row slot of a row of the GEMM tile, from the first one on.
  __device__ __forceinline__ int RowSlot(int row) const {
    const int rows = 1 << tile_rows_log2;
    return row < rows ? row : row - rows + kPairRows;
  }
};

// Gives a GEMM tile so many rows.
__device__ __forceinline__ void SetTileRows(const Layer& layer, int rows_log2,
                                            PortableDescriptor& d) {
  d.row_tiles = RowTiles(layer, rows_log2);
  d.input_positions = InputPositions(layer, rows_log2);
  d.vectors = (kBlockK / kPackChannels) << (rows_log2 + d.in_length_log2);
  d.halo = d.row_tiles > 0 ? 0 : layer.halo << rows_log2;
  d.halo_log2 = Log2(d.input_positions - (1 << d.in_length_log2)) + rows_log2;
  d.columns_log2 = rows_log2 + layer.out_length_log2;
  d.rows_log2 = rows_log2;
}

// What virtual CTA `index` takes of a layer. first, second: the CTA has both of its pair, and it
// is that one.
template <typename T>
__device__ __forceinline__ PortableDescriptor DescribeVirtual(const PortableArgs& args,
                                                              const Layer& layer, int index,
                                                              bool first, bool second) {
  const OutputTile tile = TileOfVirtual(index);
  const int slots_log2 = args.plan.row_slots_log2;
  PortableDescriptor d = {MakeLayerDescriptor<T>(args.args, layer, tile, CtaOfTile(tile)),
                          layer.rows_log2, false, 0, 0};
  const GemmTile gemm = GemmTileOf(layer, tile);
  const bool joined = JoinsPairs(layer, slots_log2);
  d.has_work = d.has_work && gemm.row0 < 1 << slots_log2 && !(second && joined);
  SetTileRows(layer, first && joined ? layer.rows_log2 + 1 : min(layer.rows_log2, slots_log2), d);
  if (second) {
    const GemmTile before = GemmTileOf(layer, TileOfVirtual(index - 1));
    d.repeats_input = d.has_work && before.has_work && !layer.shape.shortcut &&
                      layer.k_slice == kBlockK && before.row0 == gemm.row0 &&
                      before.k_slice == gemm.k_slice;
  }
  return d;
}

// An output tile of a CTA whose row slot is used.
struct alignas(16) OwnOutput {
  int tile;              // of the CTA's virtual CTAs
  int row, group;        // row slot; norm group
  int source_row;        // as of EpilogueThread
  uint32_t cond_offset;  // likewise
};

__device__ __forceinline__ uint8_t* SharedBegin() {
  extern __shared__ __align__(128) uint8_t shared[];
  return shared;
}

// Where something stands in shared memory, bytes from its begin. A pointer that was read from
// memory would be one to any memory.
template <typename T>
struct InShared {
  int at;
  __device__ __forceinline__ operator T*() const {
    return reinterpret_cast<T*>(SharedBegin() + at);
  }
};

// What a CTA stands for, and where its tables are; at the start of shared memory.
struct alignas(16) PortableCta {
  int first, count;  // virtual CTAs
  int output_count;
  InShared<OwnOutput> outputs;
  InShared<PortableDescriptor> descriptors;  // (virtual CTAs, layers)
  InShared<const Layer> layers;
  InShared<float> x;  // these as in CtaState
  InShared<const float> head_bias;
  InShared<int> timesteps;
  InShared<uint8_t> first_weights, head_weights;
  int first_bytes, head_bytes;
  InShared<float2> moments;  // two buffers in turn, of either half of the threads
  InShared<uint8_t> input, accumulators;
  PicardWindows windows;

  __device__ __forceinline__ OutputTile Tile(int i) const { return TileOfVirtual(first + i); }
  __device__ __forceinline__ bool IsUsed(int i, const PortablePlan& plan) const {
    return Tile(i).row_slot < 1 << plan.row_slots_log2;
  }
  // Where the first convolution's and the head's weights of a norm group stand, one of two.
  __device__ __forceinline__ int GroupSlot(int group) const { return group - Tile(0).group; }
};
__device__ __forceinline__ PortableCta& OwnCta() {
  return *reinterpret_cast<PortableCta*>(SharedBegin());
}
// Its descriptors, and the layers: in shared memory where that holds the tables.
template <bool kTablesInShared>
__device__ __forceinline__ PortableDescriptor* OwnDescriptors(const PortableArgs& args) {
  if (kTablesInShared) return OwnCta().descriptors;
  return static_cast<PortableDescriptor*>(args.table) +
         static_cast<size_t>(OwnCta().first) * args.args.layer_count;
}
template <bool kTablesInShared>
__device__ __forceinline__ const Layer* OwnLayers(const PortableArgs& args) {
  return kTablesInShared ? static_cast<const Layer*>(OwnCta().layers) : args.args.layers;
}

// The weights of its tiles, (layers, virtual CTAs), and behind them one with kEndOfTiles.
inline constexpr int kEndOfTiles = -1;
__device__ __forceinline__ WeightTile* OwnWeightTiles() {
  return reinterpret_cast<WeightTile*>(&OwnCta() + 1);
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PORTABLE_VIRTUAL_CTAS_CUH_

#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_PORTABLE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_PORTABLE_CUH_

#include "kernels/cuda/megakernel/megakernel.cuh"

// The portable form of the megakernel: the same layers, exchange and epilogue in instructions of
// 8.0, on any number of CTAs from 8 to 128 and in any shared memory from 99 KiB on.
//
// * The 128 CTAs of the schedule become virtual: CTA c stands for those from VirtualBegin(c) on. It
//   takes their GEMM tiles through a layer one after the other, then their output tiles. So a layer
//   of a CTA waits for layers before alone, and what README.md proves of the order holds.
// * Neighbours in the order of virtual CTAs are those of rows r and r + 8 of a norm group. Where
//   GEMM tiles have few rows, theirs have the same weights: a CTA of both takes them as one tile of
//   twice the rows. Where tiles have all rows, most have the same input, which is received once.
// * Row slots beyond those of the launch's rows are left out: nobody sends, multiplies or publishes
//   theirs.
// * Products are mma.sync, whose weights are loaded into registers, a K block ahead.

namespace mjp::megakernel {

// Of a GEMM tile.
inline constexpr int kMostColumns = 64;
// Rows of a pair of neighbours are so far apart.
inline constexpr int kPairRows = kRowsPerBatch / 2;
// The first virtual CTA of `cta`: the first ones stand for one more than the others.
MJP_HOST_DEVICE inline int VirtualBegin(int cta, int ctas) {
  const int more = kCtas % ctas;
  return cta * (kCtas / ctas) + (cta < more ? cta : more);
}
MJP_HOST_DEVICE inline OutputTile TileOfVirtual(int index) {
  const int in_group = index % kRowsPerBatch;
  return {in_group / 2 + in_group % 2 * kPairRows, index / kRowsPerBatch};
}
MJP_HOST_DEVICE inline int CtaOfTile(const OutputTile& tile) {
  return tile.group * kRowsPerBatch + tile.row_slot;
}

// Of a CTA with `tiles` output tiles, one or a pair, from row slot `row_slot` on: rows whose
// sampler steps it takes, kPairRows apart. Slots from the last row on all stand for that row, whose
// x is in shared memory once: a second step of it would read what the first one left.
MJP_HOST_DEVICE inline int SampledRows(int row_slot, int tiles, int rows) {
  return row_slot < rows - 1 ? tiles : tiles > 0;
}

// How a launch lies on a GPU.
struct PortablePlan {
  int ctas = 0;
  bool fits = false;             // into the target; otherwise it is not launched
  bool table_in_shared = false;  // layers and descriptors; otherwise in device memory
  bool pairs = false;            // output tiles are so small that two epilogues run side by side
  int row_slots_log2 = 0;        // row slots that are used: a power of two of them
  int accumulator_offset = 0;    // from the input
  size_t shared_bytes = 0;       // of a CTA

  MJP_HOST_DEVICE int TilesPerCta() const { return (kCtas + ctas - 1) / ctas; }
};

// Whether a pair's GEMM tiles of a layer are taken as one.
MJP_HOST_DEVICE inline bool JoinsPairs(const Layer& layer, int row_slots_log2) {
  const int rows = 2 << layer.rows_log2;
  return 1 << row_slots_log2 == kRowsPerBatch && layer.shape.in_c > 0 && layer.shape.phases == 1 &&
         rows <= kRowsPerBatch && rows * layer.shape.out_length <= kMostColumns &&
         rows << layer.in_length_log2 <= kMmaThreads;
}
// Where the rows of a GEMM tile of one K block are whole tiles of 8 columns, so many of them; or 0.
// Then all taps of five read the same tiles, and there are no zeros around the rows.
MJP_HOST_DEVICE inline int RowTiles(const Layer& layer, int rows_log2) {
  const int columns = layer.shape.out_length << rows_log2;
  const bool few = columns < 32 || (columns == 32 && rows_log2 != 3);
  return layer.shape.taps != 5 || layer.k_slice > kBlockK || few || rows_log2 < 3
             ? 0
             : 1 << (rows_log2 - 3);
}
// Positions of a row of a GEMM tile's input in shared memory.
MJP_HOST_DEVICE inline int InputPositions(const Layer& layer, int rows_log2) {
  return RowTiles(layer, rows_log2) > 0 ? (1 << layer.in_length_log2) + 1 : layer.padded_length;
}

struct PortableArgs {
  Args args;
  PortablePlan plan;
  void* table = nullptr;        // (kCtas, layers) descriptors
  float4* residuals = nullptr;  // (kCtas, kMmaThreads)
};

// Bytes of `table`.
size_t PortableTableBytes(int layer_count);
// Places a launch on `target`. args: but for its offsets.
PortablePlan PlanPortable(const std::vector<Layer>& layers, const Args& args, Format format,
                          const Target& target);
// Enqueues the steps, or the windows, like LaunchMegakernel. Throws Error(kEnvironment) where the
// device cannot hold all CTAs at once.
void LaunchPortable(Format format, const PortableArgs& args, cudaStream_t stream);

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PORTABLE_PORTABLE_CUH_

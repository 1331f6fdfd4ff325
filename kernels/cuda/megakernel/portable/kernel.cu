// The portable form of the megakernel: portable.cuh says what differs from kernel.cu.

#include <algorithm>

#include "kernels/cuda/megakernel/launch_persistent.cuh"
#include "kernels/cuda/megakernel/portable/portable.cuh"
#include "kernels/cuda/megakernel/portable/roles.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"

namespace mjp::megakernel {
namespace {

// grid: (plan.ctas), all resident.
template <Format F, bool kTablesInShared>
__global__ void __launch_bounds__(kMmaThreads, 1)
    UnetMegakernelPortable(const __grid_constant__ PortableArgs args) {
  if (NothingToDo(args.args.common)) return;
  const PortableLayout smem(args.args, args.plan);
  CtaState cta = MakeCtaState(args.args.common, smem, SharedBegin());
  RunPortable<F, kTablesInShared>(cta, args, smem);
}

// Throws Error(kEnvironment) unless the device holds all CTAs of `plan` at once.
template <auto kKernel>
void CheckResident(const PortablePlan& plan) {
  const GpuTraits& gpu = GpuTraits::Current();
  AllowShared(kKernel, gpu.shared_bytes, "shared memory of the megakernel");
  int each = 0;
  CheckCuda(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kKernel, kMmaThreads, plan.shared_bytes),
      "occupancy of the megakernel");
  if (each * gpu.multiprocessors >= plan.ctas) return;
  throw EnvironmentError("the megakernel was planned for " + std::to_string(plan.ctas) +
                         " blocks at once, and " + gpu.name + " holds " +
                         std::to_string(each * gpu.multiprocessors) +
                         " of them; use precision tf32 or fp32, or the CPU backend");
}

// Whether CTA groups of a layer span all rows, and every CTA has a GEMM tile of it whose input is
// of the layer before.
bool EveryCtaReadsTheLayerBefore(const Layer& layer, int ctas) {
  if (!SpansAllRows(layer)) return false;
  for (int cta = 0; cta < ctas; ++cta) {
    bool reads = false;
    for (int i = VirtualBegin(cta, ctas); i < VirtualBegin(cta + 1, ctas); ++i) {
      const GemmTile tile = GemmTileOf(layer, TileOfVirtual(i));
      reads = reads || (tile.has_work && tile.k_slice * layer.k_slice < layer.source_channels);
    }
    if (!reads) return false;
  }
  return true;
}

// How many row slots a launch over `rows` rows uses: a power of two that holds them. All where a
// CTA might be left without a GEMM tile (I8), and where a CTA without output tiles might multiply a
// K slice of a skip alone two uses of a mailbox ahead of its owner (I4).
int RowSlotsLog2(const std::vector<Layer>& layers, int rows, int ctas) {
  constexpr int kAll = 4;
  static_assert(1 << kAll == kRowsPerBatch);
  // The last layer of which every CTA has read the layer before. What it read is of an owner that
  // had the sums of the layer before, and those were made of what all owners published of the layer
  // before that. The shortcut's sums are received behind publishing. All of the pass before is
  // received: a skip was made of what all owners published in this pass.
  int last = -1;
  const auto is_received = [](int use, int received) { return use < 0 || use <= received; };
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    if (layers[i].source_channels < layers[i].shape.in_c &&
        (!is_received(UseBeforeLast(layers, &Layer::mailbox, i), last - 2) ||
         !is_received(UseBeforeLast(layers, &Layer::shortcut_mailbox, i), last - 3)))
      return kAll;
    if (EveryCtaReadsTheLayerBefore(layers[i], ctas)) last = i;
  }
  if (last < 0) return kAll;
  int log2 = 0;
  while (1 << log2 < rows) ++log2;
  return log2;
}

template <Format F, bool kTablesInShared>
void Launch(const PortableArgs& args, cudaStream_t stream) {
  constexpr auto kKernel = UnetMegakernelPortable<F, kTablesInShared>;
  CheckResident<kKernel>(args.plan);
  LaunchPersistent<kKernel>(args, args.plan.ctas, args.plan.shared_bytes, stream);
}

}  // namespace

size_t PortableTableBytes(int layer_count) {
  return size_t{kCtas} * layer_count * sizeof(PortableDescriptor);
}

PortablePlan PlanPortable(const std::vector<Layer>& layers, const Args& args, Format format,
                          const Target& target) {
  constexpr size_t kBeyond = 256;  // the mma of few columns reads 16
  PortablePlan plan;
  plan.ctas = target.ctas;
  if (plan.ctas < kLeastCtas) return plan;
  size_t input = 0, accumulators = 0, shortcut = 0;
  plan.pairs = true;
  plan.row_slots_log2 = RowSlotsLog2(layers, args.common.rows, plan.ctas);
  const auto joins = [&](const Layer& s) {
    return plan.ctas < kCtas && JoinsPairs(s, plan.row_slots_log2);
  };
  for (const Layer& s : layers) {
    const int length = s.shape.out_length * s.shape.phases;
    plan.pairs = plan.pairs && length << s.group_channels_log2 <= 4 * kMmaThreads / 2;
    if (s.shape.in_c == 0) continue;
    const int rows_log2 = joins(s) ? s.rows_log2 + 1 : std::min(s.rows_log2, plan.row_slots_log2);
    const size_t bytes = AccumulatorBytes(s.shape.out_length << rows_log2, format);
    input = std::max(input,
                     (size_t{kBlockK} * 2 * InputPositions(s, rows_log2) << rows_log2) + kBeyond);
    accumulators = std::max(accumulators, bytes);
    if (!s.shape.shortcut) continue;
    shortcut = std::max(shortcut, bytes);
    if (s.k_slice > kBlockK)
      accumulators = std::max(accumulators, AccumulatorBytes(kMostColumns, format) +
                                                kMostColumns / 2 * kMmaThreads * sizeof(float));
  }
  const size_t behind_input = (std::max(input, shortcut) + 127) / 128 * 128;
  const size_t sweep =
      PicardScratchBytes(args.common.picard.window, args.common.length * args.common.action_dim);
  plan.accumulator_offset = static_cast<int>(behind_input);
  const auto place = [&](bool table_in_shared) {
    plan.table_in_shared = table_in_shared;
    plan.shared_bytes =
        PortableLayout(args, plan).end + std::max(sweep, behind_input + accumulators);
    plan.fits = plan.shared_bytes <= target.shared_bytes;
  };
  place(true);
  if (!plan.fits) place(false);
  return plan;
}

void LaunchPortable(Format format, const PortableArgs& args, cudaStream_t stream) {
  if (format == Format::kFp16)
    return args.plan.table_in_shared ? Launch<Format::kFp16, true>(args, stream)
                                     : Launch<Format::kFp16, false>(args, stream);
  throw Unsupported("the portable megakernel has fp16 kernels alone");
}

}  // namespace mjp::megakernel

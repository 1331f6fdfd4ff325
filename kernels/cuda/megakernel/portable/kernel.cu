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
  CheckCuda(
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, gpu.shared_bytes),
      "shared memory of the megakernel");
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

// How many row slots a launch over `rows` rows uses: a power of two that holds them. All where a
// CTA might be left without a GEMM tile (I8), and where a K slice of a skip alone could be
// multiplied two uses of a mailbox ahead of its owner, since a CTA without output tiles knows less
// of them (I4).
int RowSlotsLog2(const std::vector<Layer>& layers, int rows, int ctas) {
  constexpr int kAll = 4;
  static_assert(1 << kAll == kRowsPerBatch);
  const auto spanning = std::find_if(layers.rbegin(), layers.rend(), [](const Layer& s) {
    return s.shape.in_c > 0 && s.rows_log2 == kAll;
  });
  if (spanning == layers.rend()) return kAll;
  for (int cta = 0; cta < ctas; ++cta) {
    bool multiplies = false;
    for (int i = VirtualBegin(cta, ctas); i < VirtualBegin(cta + 1, ctas); ++i)
      multiplies = multiplies || GemmTileOf(*spanning, TileOfVirtual(i)).has_work;
    if (!multiplies) return kAll;
  }
  for (const Layer& s : layers)
    if (s.source_channels < s.shape.in_c && std::max(s.mailbox.uses, s.shortcut_mailbox.uses) > 2)
      return kAll;
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

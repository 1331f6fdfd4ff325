#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_PORTABLE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_PORTABLE_CUH_

#include "kernels/cuda/megakernel/megakernel.cuh"

// The portable form of the megakernel: the same layers, exchange and epilogue in instructions of
// 8.0, on any number of CTAs from 8 to 128 and in any shared memory from 99 KiB on.
//
// * The 128 CTAs of the schedule become virtual: CTA c stands for those from VirtualBegin(c) on. It
//   takes their GEMM tiles through a layer one after the other, then their output tiles. So a layer
//   of a CTA waits for layers before alone, and what README.md proves of the order holds.
// * Products are mma.sync, and weights come by cp.async into a ring of stages: as many as fit.

namespace mjp::megakernel {

// A warp's fragments of a tap, of a K block: what is copied, and waited for, at once.
inline constexpr int kStageFragments = kKSteps, kStageBytes = kStageFragments * kFragmentBytes;
inline constexpr int kLeastStages = 2, kMostStages = 8;

// The first virtual CTA of `cta`; they are counted by rows first, unlike the schedule's CTAs: the
// sampler's rows of a CTA stand together then.
MJP_HOST_DEVICE inline int VirtualBegin(int cta, int ctas) { return cta * kCtas / ctas; }
MJP_HOST_DEVICE inline OutputTile TileOfVirtual(int index) {
  return {index / kNormGroups, index % kNormGroups};
}
MJP_HOST_DEVICE inline int CtaOfTile(const OutputTile& tile) {
  return tile.group * kRowsPerBatch + tile.row_slot;
}

// How a launch lies on a GPU.
struct PortablePlan {
  int ctas = 0;
  int stages = 0;                // of each warp's weight ring; 0: it does not fit
  bool table_in_shared = false;  // layers and descriptors; otherwise in `table`
  bool pairs = false;            // output tiles are so small that two epilogues run side by side
  int accumulator_offset = 0;    // from the input
  size_t shared_bytes = 0;       // of a CTA

  MJP_HOST_DEVICE int TilesPerCta() const { return (kCtas + ctas - 1) / ctas; }
};

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

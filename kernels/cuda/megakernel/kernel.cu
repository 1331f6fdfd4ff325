// The persistent U-Net megakernel of up to 32 rows: bound by the latency between layers.
//
// megakernel.cuh says how the CTAs split a layer; README.md draws it. While a warp multiplies, its
// weights of the next layer are copied to shared memory, across layers and passes; they are in
// registers before the layer's input arrives. A layer is: receive activations, multiply, send
// partial sums; receive those of the own output tile, run the epilogue, publish. With warp
// specialisation (roles as in HazyResearch's Megakernels) MMA warps do the first half and epilogue
// warps the second: whatever either needs besides the values it polls is ready when they arrive.
// Bytes: weights once per CTA group's rows and pass; activations and partial sums from L2, where
// the exchange buffers stay, since each is used again soon.

#include <algorithm>

#include "kernels/cuda/megakernel/launch_persistent.cuh"
#include "kernels/cuda/megakernel/roles.cuh"
#include "kernels/cuda/megakernel/smem_layout.cuh"

namespace mjp::megakernel {
namespace {

// grid: (kCtas), all resident. kRowBatches: 0 without warp specialisation; then the MMA warps run
// the epilogue too.
template <Format F, int kRowBatches>
__global__ void __launch_bounds__(kRowBatches > 0 ? kSpecializedThreads : kMmaThreads, 1)
    UnetMegakernel(const __grid_constant__ Args args) {
  constexpr bool kWarpSpecialized = kRowBatches > 0;
  extern __shared__ __align__(128) uint8_t shared[];
  if constexpr (!kHaveWgmma) return Trap();
  if (NothingToDo(args.common)) return;
  const SmemLayout smem(args);
  CtaState cta = MakeCtaState(args.common, smem, shared);
  const uint32_t before = *args.common.pass_count;
  if (kWarpSpecialized && threadIdx.x >= kMmaThreads) {
    SetRegisters<false, kEpilogueRegisters<kRowBatches>>();
    return RunEpilogueWarps<F, kRowBatches>(cta, args, smem, shared, before);
  }
  if constexpr (kWarpSpecialized) SetRegisters<true, kMmaRegisters<kRowBatches>>();
  RunMmaWarps<F, kRowBatches>(cta, args, smem, shared, before);
}

}  // namespace

SharedSpace PlanSharedSpace(const std::vector<Layer>& layers, const Args& args, Format format,
                            size_t room) {
  constexpr size_t kBeyond = 64;  // the mma of 4 columns reads 8
  size_t input = 0, accumulators = 0, shortcut = 0, local = 0, after_local = 0;
  bool follows_local = false;
  for (const Layer& s : layers) {
    if (s.shape.in_c == 0) continue;
    const size_t channels = s.cta_local ? kLocalBlockK : kBlockK,
                 bytes = AccumulatorBytes(s.shape.out_length << s.rows_log2, format);
    input = std::max(input, (channels * 2 * s.padded_length << s.rows_log2) + kBeyond);
    if (s.cta_local) {
      local = size_t{kMaxRowBatches} * kLocalAccumulatorBytes;
    } else {
      accumulators = std::max(accumulators, bytes);
      if (follows_local) after_local = std::max(after_local, bytes);
      if (s.shape.shortcut && !args.warp_specialized) shortcut = std::max(shortcut, bytes);
    }
    follows_local = s.cta_local;
  }
  // A layer right behind a CTA-local one writes accumulators while that one's second batch is still
  // read: no overlap. Other layers may use the space.
  accumulators = std::max(accumulators, after_local + local);
  const size_t before = SmemLayout(args).end,
               behind_input = (std::max(input, shortcut) + 127) / 128 * 128;
  const size_t sweep =
      PicardScratchBytes(args.common.picard.window, args.common.length * args.common.action_dim);
  const size_t all = before + std::max(sweep, behind_input + accumulators);
  if (args.warp_specialized || all <= room)
    return {all, static_cast<int>(behind_input),
            static_cast<int>(behind_input + accumulators - local)};
  return {before + std::max({sweep, input, accumulators, 2 * shortcut}), 0, 0};
}

template <Format F>
static void Launch(const Args& args, size_t shared_bytes, cudaStream_t stream) {
  if (!args.warp_specialized)
    return LaunchPersistent<UnetMegakernel<F, 0>>(args, kCtas, shared_bytes, stream);
  if (args.row_batches == 1)
    return LaunchPersistent<UnetMegakernel<F, 1>>(args, kCtas, shared_bytes, stream,
                                                  kSpecializedThreads);
  LaunchPersistent<UnetMegakernel<F, 2>>(args, kCtas, shared_bytes, stream, kSpecializedThreads);
}

void LaunchMegakernel(Format format, const Args& args, size_t shared_bytes, cudaStream_t stream) {
  if (format == Format::kFp16) return Launch<Format::kFp16>(args, shared_bytes, stream);
  if (format == Format::kBf16) return Launch<Format::kBf16>(args, shared_bytes, stream);
  throw Unsupported("the megakernel has fp16 and bf16 kernels alone");
}

}  // namespace mjp::megakernel

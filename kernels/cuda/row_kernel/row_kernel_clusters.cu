// The row kernel across clusters: a U-Net pass, or a chain of them, of one row in 64 CTAs. Bound by
// the latency of a layer: an exchange within the cluster and one through L2.
//
// Cluster g makes norm group g of every layer. Its CTA k multiplies slice k of the in channels,
// which is group k of the layer before, and sends partial sums to the owner of the group, CTA g.
// The owner runs the epilogue and sends the group's activations to CTA g of every cluster
// (clusters_exchange.cuh). All owners have x and take the sampler's steps, with the same bits.
// Weights flow through a ring in shared memory meanwhile (weight_pipeline.cuh). Bytes: a 64th of
// all weights from L2, or from device memory where they do not fit there, for each CTA and pass.

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/tensor_clock.cuh"
#include "kernels/cuda/row_kernel/chain.cuh"
#include "kernels/cuda/row_kernel/clusters_epilogue.cuh"
#include "kernels/cuda/row_kernel/clusters_products.cuh"
#include "kernels/cuda/row_kernel/roles.cuh"

namespace mjp::row_kernel {
namespace {

__device__ __forceinline__ bool IsOwner(const Cta& cta) { return cta.rank == cta.slice; }

// The products of pass `pass` of the launch, by the warps that multiply.
template <Format F, int kChunks>
__device__ __forceinline__ void MultiplySlices(const Cta& cta, WeightsAhead<kChunks>& weights,
                                               int pass, uint32_t first) {
  const int warp = static_cast<int>(threadIdx.x) / 32 - kWarps;
#pragma unroll 1
  for (int i = 0; i < cta.a.layer_count; ++i) {
    const Layer& s = cta.LayerAt(i);
    if (s.slices == 1 && !IsOwner(cta)) continue;  // x is the owners'
    const Activations received = {NumberOf(cta, pass, i - 1)};
    const Inbox inbox(cta, cta.LayerAt(max(i - 1, 0)), received);
    const auto wait = [&] {
      if (i > 0) {
        inbox.Receive(first + received.number + 1, cta.a.timed_out);
      } else if (pass > 0) {
        Await<kInputReady>();
      }
    };
    const Sums sums(cta, pass, i);
    int chunks = 0;
    if (s.n_tiles == 1) chunks = MultiplySlice<F, 1>(cta, s, sums, weights, warp, wait);
    if (s.n_tiles == 2) chunks = MultiplySlice<F, 2>(cta, s, sums, weights, warp, wait);
    if (s.n_tiles == 4) chunks = MultiplySlice<F, 4>(cta, s, sums, weights, warp, wait);
    if (IsOwner(cta)) Send<kSumsReady>();
    weights.Refill(chunks);
  }
}

// The epilogue of layer `i`, by the half of the epilogue warps whose turn it is; the other half
// prepares the next one.
template <typename T, int kPairs>
__device__ __forceinline__ void RunGroup(const Cta& cta, const FilmRows& film, int pass, int i,
                                         uint32_t first) {
  const Layer& s = cta.LayerAt(i);
  const Sums sums(cta, pass, i);
  const Activations sent = {NumberOf(cta, pass, i)};
  const bool has_turn = static_cast<int>(threadIdx.x) / kGroupThreads == sent.number % 2;
  // zeros in the other half: otherwise registers would be kept from layer to layer
  ClustersEpilogue<T, kPairs> epilogue = {};
  if (has_turn) epilogue.Prepare(cta, s, film, sums, sent, first + sent.number + 1);
  Await<kSumsReady>();  // of this CTA: its input is in shared memory
  if (has_turn) {
    sums.Receive(cta, s.sums_bytes);
  } else {
    // it watches for both halves: a set flag tells that others miss this layer's activations
    const volatile int* timed_out = cta.a.timed_out;
    int seen = 0;
    sums.Receive(cta, s.sums_bytes, [&](int tries) {
      return tries % kLongWait == kLongWait - 1 && *timed_out != 0 && ++seen == 2;
    });
  }
  if (has_turn) epilogue.Run();
}

// The epilogues of pass `pass` of the launch. Returns when the head's partial sums are there.
template <Format F>
__device__ __forceinline__ void RunGroups(const Cta& cta, const FilmRows& film, int pass,
                                          uint32_t first) {
  using T = Storage<F>;
  const int head = cta.a.layer_count - 1;
#pragma unroll 1
  for (int i = 0; i < head; ++i) {
    const int pairs = cta.LayerAt(i).lane_pairs;
    if (pairs == 1) RunGroup<T, 1>(cta, film, pass, i, first);
    if (pairs == 2) RunGroup<T, 2>(cta, film, pass, i, first);
    if (pairs == 4) RunGroup<T, 4>(cta, film, pass, i, first);
  }
  Await<kSumsReady>();
  SpinWatchdog watchdog(cta.a.timed_out);
  int since = 0;
  Sums(cta, pass, head).Receive(cta, cta.LayerAt(head).sums_bytes, [&](int tries) {
    return watchdog.TimedOut(tries) && ++since == kLongWait;
  });
}

template <Format F>
__device__ __forceinline__ void RunOwner(const Cta& cta, Element& element, uint32_t first) {
  const Args& a = cta.a;
  int timestep = a.x_storage ? a.row_step[cta.row] : a.schedule[a.begin].timestep;
#pragma unroll 1
  for (int k = a.begin; k < a.end; ++k) {
    const FilmRows film = {a.film.step_table + static_cast<size_t>(timestep) * a.film.width,
                           a.film.cond};
    LoadStep(cta, k, element);
    if (k + 1 < a.end) timestep = a.schedule[k + 1].timestep;
    const int pass = k - a.begin;
    RunGroups<F>(cta, film, pass, first);
    EndPass<Storage<F>>(cta, k, element);
    if (k + 1 < a.end) Send<kInputReady>();
  }
  // every CTA has read it: its products are in the sums
  if (cta.slice == 0 && threadIdx.x == 0) *a.exchanges = first + NumberOf(cta, a.end - a.begin, 0);
}

// Whether the MMA warps of this CTA are done; behind the barriers of sums.
__device__ __forceinline__ volatile int* Done(const Cta& cta) {
  return reinterpret_cast<volatile int*>(cta.shared + cta.a.shared.barriers + kSumsBarriers * 8);
}

// Keeps the GPC's clock until then, by a warp that has nothing else to do.
__device__ __forceinline__ void KeepClock(const Cta& cta) {
  TensorClock clock;
  while (__all_sync(~0u, *Done(cta) == 0)) {
    clock.Keep();
    __nanosleep(100);
  }
  clock.End();
}

// grid: (1, clusters, CTAs of a cluster)
template <Format F, int kChunks>
__global__ void __launch_bounds__(kThreads, 1) ClustersKernel(const __grid_constant__ Args a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const int rank = static_cast<int>(blockIdx.z), cluster = static_cast<int>(blockIdx.y);
  const Cta cta = {a, shared, 0, rank, cluster};
  const int warp = static_cast<int>(threadIdx.x) / 32 - kWarps;  // of the MMA warps
  const int2 range =
      warp < 0 ? make_int2(0, 0) : a.ranges[(cluster * kMaxCtas + rank) * kWarps + warp];
  WeightsAhead<kChunks> weights(a.weights + static_cast<size_t>(range.x) * kFragmentBytes, range.y,
                                SharedAddress(shared) + warp * kChunks * kChunkBytes,
                                static_cast<int>(threadIdx.x % 32));
  if (threadIdx.x == kRoleThreads) {
    for (int i = 0; i < kSumsBarriers; ++i)
      InitBarrier(SharedAddress(shared + a.shared.barriers) + i * 8, 1);
    FenceBarrierInit();
    *Done(cta) = 0;
  }
  SetUp(cta);
  const uint32_t first = *static_cast<const volatile uint32_t*>(a.exchanges);
  __syncthreads();
  Element element(cta);
  if (warp < 0 && IsOwner(cta)) LoadX<Storage<F>>(cta, element);
  ClusterBarrier();
  if (warp >= 0) {
#pragma unroll 1
    for (int k = a.begin; k < a.end; ++k) MultiplySlices<F>(cta, weights, k - a.begin, first);
    WaitCopies<0>();
    if (threadIdx.x == kRoleThreads) *Done(cta) = 1;
  } else if (IsOwner(cta)) {
    RunOwner<F>(cta, element, first);
  } else if (kPausesCostClock && threadIdx.x < 32 && rank == (cluster + 1) % kMaxCtas) {
    KeepClock(cta);
  }
  ClusterBarrier();  // nobody's shared memory is written any more
}

template <Format F, int kChunks>
void LaunchForm(const Args& args, cudaStream_t stream) {
  AllowShared(ClustersKernel<F, kChunks>, GpuTraits::Current().shared_bytes,
              "shared memory of the row kernel");
  LaunchShape shape;
  shape.grid = dim3(1, kClusters, kMaxCtas);
  shape.block = dim3(kThreads);
  shape.cluster_z = kMaxCtas;
  shape.cooperative = true;
  shape.shared_bytes = args.shared.end;
  Launch(ClustersKernel<F, kChunks>, shape, stream, "row kernel across clusters", args);
}

}  // namespace

void LaunchRowKernelAcrossClusters(Format format, const Args& args, cudaStream_t stream) {
  if (args.rows != 1) throw Unsupported("the row kernel across clusters takes one row");
  if (format == Format::kFp16) return LaunchForm<Format::kFp16, kClustersRing>(args, stream);
  if (format == Format::kBf16) return LaunchForm<Format::kBf16, kClustersRing>(args, stream);
  throw Unsupported("the row kernel has fp16 and bf16 kernels alone");
}

}  // namespace mjp::row_kernel

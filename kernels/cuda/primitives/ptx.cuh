#ifndef KERNELS_CUDA_PRIMITIVES_PTX_CUH_
#define KERNELS_CUDA_PRIMITIVES_PTX_CUH_

#include <cstdint>

#include "kernels/shared/format.h"

// One inline function for each PTX instruction that the kernels use, of code for 8.0 and later. An
// instruction that 9.0 brought is a trap in code for less: a kernel that was launched as if it had
// it ends with an error, not with wrong values. GpuTraits tells the host beforehand.

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "the kernels need compute capability 8.0 or later"
#endif

namespace mjp {

// Whether this code has the cluster's memory and the barriers of asynchronous copies.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr bool kHaveClusters = false;
#else
constexpr bool kHaveClusters = true;
#endif

// Ends the launch with an error: what a kernel does first whose code is not for this device.
__device__ __forceinline__ void Trap() { __trap(); }

// The device's global timer.
__device__ __forceinline__ uint64_t GlobalNanoseconds() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__device__ __forceinline__ uint32_t SharedAddress(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void StoreShared(uint32_t shared, const uint4& v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}

// Loads of what no kernel writes, issued where they stand: the compiler does not move them to their
// use.
__device__ __forceinline__ float LoadNow(const float* from) {
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(from));
  return v;
}
__device__ __forceinline__ float4 LoadNow(const float4* from) {
  float4 v;
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from));
  return v;
}
__device__ __forceinline__ float2 LoadNow8(const float* from) {
  float2 v;
  asm volatile("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(from));
  return v;
}
__device__ __forceinline__ uint4 LoadNow16(const void* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

// Copies 16 bytes from global to shared memory asynchronously; writes zeros if !valid.
__device__ __forceinline__ void CopyAsync16(uint32_t shared, const void* global, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(bytes));
}
// The same of 4 bytes.
__device__ __forceinline__ void CopyAsync4(uint32_t shared, const void* global, bool valid) {
  const int bytes = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(global),
               "r"(bytes));
}
__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most `kPending` of this thread's committed groups are still under way.
template <int kPending>
__device__ __forceinline__ void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Barriers in shared memory at `barrier`, of 8 bytes; `count` arrivals end a phase.
__device__ __forceinline__ void InitBarrier(uint32_t barrier, int count) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
#else
  __trap();
#endif
}
// What InitBarrier did is seen by the cluster and by asynchronous copies after its next barrier.
__device__ __forceinline__ void FenceBarrierInit() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
  __trap();
#endif
}
// Whether the barrier's phase of this phase bit is over; waits a while for it.
__device__ __forceinline__ bool BarrierPassed(uint32_t barrier, uint32_t phase) {
  uint32_t passed = 1;
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(passed)
      : "r"(barrier), "r"(phase)
      : "memory");
#else
  __trap();
#endif
  return passed != 0;
}
__device__ __forceinline__ void AwaitBarrier(uint32_t barrier, uint32_t phase) {
  while (!BarrierPassed(barrier, phase)) {
  }
}
// True in one lane of a warp, whose lanes are together: always the same.
__device__ __forceinline__ bool OneLane() {
  uint32_t one = threadIdx.x % 32 == 0;
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(one));
#endif
  return one != 0;
}
// An arrival at `barrier` whose phase does not end before so many bytes are there.
__device__ __forceinline__ void ExpectBytes(uint32_t barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
#else
  __trap();
#endif
}
// Copies `bytes` (a multiple of 16) from global to shared memory asynchronously, which `barrier`
// expects.
__device__ __forceinline__ void CopyBulk(uint32_t shared, const void* global, int bytes,
                                         uint32_t barrier, uint64_t policy) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1], %2, [%3], %4;" ::"r"(shared),
      "l"(global), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
#else
  __trap();
#endif
}

// The same from this block's shared memory to `there`, an address in the cluster's, whose block has
// the barrier too.
__device__ __forceinline__ void CopyBulkInCluster(uint32_t there, uint32_t shared, int bytes,
                                                  uint32_t barrier_there) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(there),
      "r"(shared), "r"(bytes), "r"(barrier_there)
      : "memory");
#else
  __trap();
#endif
}

// Asks L2 for bytes that this kernel or a later one reads: a multiple of 16 at such an address.
__device__ __forceinline__ void PrefetchBytes(const void* global, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
#endif
}

// Makes ordinary writes to shared memory visible to the async proxy: to bulk copies, and to
// Hopper's products.
__device__ __forceinline__ void FenceAsyncProxy() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  __trap();
#endif
}

// Four 8x8 matrices of 16-bit elements (or 8x4 of 32-bit ones); lane l gives row address l.
__device__ __forceinline__ void LoadMatrix4(uint32_t (&r)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

// A matrix of StoreMatrix2Transposed in instructions of 8.0: a lane stores a part of row lane / 4,
// whose address lane `from` + lane / 4 has.
__device__ __forceinline__ void StoreMatrixTransposed(uint32_t shared, int from, uint32_t m) {
  const int lane = threadIdx.x % 32;
  const uint32_t row = __shfl_sync(0xffffffffu, shared, from + lane / 4);
  asm volatile(
      "{\n"
      ".reg .b32 t;\n"
      "movmatrix.sync.aligned.m8n8.trans.b16 t, %1;\n"
      "st.shared.b32 [%0], t;\n"
      "}" ::"r"(row + lane % 4 * 4),
      "r"(m)
      : "memory");
}
// LoadMatrix4 the other way round, each matrix transposed: of a lane's pair a row's two neighbours
// in a column.
__device__ __forceinline__ void StoreMatrix2Transposed(uint32_t shared, uint32_t a, uint32_t b) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(shared),
               "r"(a), "r"(b)
               : "memory");
#else
  StoreMatrixTransposed(shared, 0, a), StoreMatrixTransposed(shared, 8, b);
#endif
}
__device__ __forceinline__ void StoreMatrix4Transposed(uint32_t shared, uint32_t a, uint32_t b,
                                                       uint32_t c, uint32_t d) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
      "r"(a), "r"(b), "r"(c), "r"(d)
      : "memory");
#else
  StoreMatrix2Transposed(shared, a, b);
  StoreMatrixTransposed(shared, 16, c), StoreMatrixTransposed(shared, 24, d);
#endif
}

__device__ __forceinline__ uint32_t RoundTf32(uint32_t x) {
  uint32_t y = x;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(x)));
  return y;
}

// x as a TF32 value, rounded likewise but faster; what that leaves goes to `low`, and NaN with it.
__device__ __forceinline__ uint32_t SplitTf32(uint32_t x, uint32_t& low) {
  const uint32_t high = (x + 0x1000u) & ~0x1fffu;
  low = __float_as_uint(__uint_as_float(x) - __uint_as_float(high));
  return high;
}

// c += a b over 32 bytes of k: m16 n8, k16 for 16-bit formats, k8 for tf32. sm_80 and later.
template <Format F>
__device__ __forceinline__ void MultiplyAccumulate(float (&c)[4], const uint32_t (&a)[4],
                                                   uint32_t b0, uint32_t b1) {
  if constexpr (F == Format::kFp16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else if constexpr (F == Format::kBf16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// 2^x and 1 / x by the fast units, subnormals taken as zero.
__device__ __forceinline__ float FastExp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float FastReciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float FastInverseRoot(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Barrier of all threads of the cluster that orders no memory, in two halves: nobody leaves before
// all are here.
__device__ __forceinline__ void ArriveAtClusterBarrierRelaxed() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
  __trap();
#endif
}
__device__ __forceinline__ void WaitAtClusterBarrier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __trap();
#endif
}
__device__ __forceinline__ void ClusterBarrierRelaxed() {
  ArriveAtClusterBarrierRelaxed();
  WaitAtClusterBarrier();
}

// Barrier of all threads of the cluster; writes to shared memory before it are seen after it.
__device__ __forceinline__ void ClusterBarrier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#else
  __trap();
#endif
  WaitAtClusterBarrier();
}

// Reads four floats at this shared address in the memory of block `rank` of the cluster; a block
// without a cluster has rank 0.
__device__ __forceinline__ float4 LoadFromBlock(uint32_t shared, int rank) {
  float4 v = make_float4(0, 0, 0, 0);
#if __CUDA_ARCH__ >= 900
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(remote)
               : "memory");
#else
  if (rank != 0) __trap();
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(shared)
               : "memory");
#endif
  return v;
}

// A shared address in CTA `rank` of the cluster.
__device__ __forceinline__ uint32_t InCta(uint32_t shared, int rank) {
  uint32_t there = shared;
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared), "r"(rank));
#else
  __trap();
#endif
  return there;
}
// Stores at an address that InCta gave, 8 or 16 bytes. Seen after the next ClusterBarrier.
__device__ __forceinline__ void StoreInCta(uint32_t there, uint32_t low, uint32_t high) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.v2.b32 [%0], {%1, %2};" ::"r"(there), "r"(low), "r"(high)
               : "memory");
#else
  __trap();
#endif
}
__device__ __forceinline__ void StoreInCta(uint32_t there, const float4& v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(there), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
#else
  __trap();
#endif
}
// The same of 16 bytes without a wait: whoever waits at `barrier`, in that CTA's shared memory and
// as InCta gave it, sees them, if it expects the bytes.
__device__ __forceinline__ void StoreInCtaAsync(uint32_t there, const uint4& v, uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(there),
      "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(barrier)
      : "memory");
#else
  __trap();
#endif
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_PTX_CUH_

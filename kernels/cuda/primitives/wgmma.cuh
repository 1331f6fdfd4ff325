#ifndef KERNELS_CUDA_PRIMITIVES_WGMMA_CUH_
#define KERNELS_CUDA_PRIMITIVES_WGMMA_CUH_

#include <cstdint>

#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/shared/format.h"

// Hopper's warpgroup products (sm_90a): 64 x N, k contiguous, operands in shared memory in rows of
// 128 bytes in the 128-byte swizzle; or the first one in registers, the second one in plain tiles.
// Elsewhere each of them is a trap: GpuTraits::Wgmma()
// tells the host beforehand.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define MJP_HAVE_WGMMA 1
#endif

namespace mjp {

#ifdef MJP_HAVE_WGMMA
constexpr bool kHaveWgmma = true;
#else
constexpr bool kHaveWgmma = false;
#endif

// Describes a tile whose rows are 128 bytes apart, at an address that is a multiple of 1024 plus
// 32 bytes for each step of k.
__device__ __forceinline__ uint64_t WgmmaTile(uint32_t shared) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kEightRows = uint64_t{1024 >> 4} << 32;
  return kSwizzle128 | kEightRows | (uint64_t{1} << 16) | ((shared & 0x3ffff) >> 4);
}

// The part of a tile's description, as below, that says where it is: in units of 16 bytes.
__device__ __forceinline__ uint32_t WgmmaPlainStart(uint32_t shared, int k_stride) {
  return static_cast<uint32_t>(k_stride >> 4) << 16 | (shared & 0x3ffff) >> 4;
}
__device__ __forceinline__ uint64_t WgmmaPlainAt(uint32_t start) {
  constexpr uint64_t kEightRows = uint64_t{128 >> 4} << 32;
  return kEightRows | start;
}
__device__ __forceinline__ uint64_t WgmmaPlainAt(uint64_t tile) { return tile; }
// Describes a tile without swizzle: eight rows of 16 bytes of k stand together, eight rows on
// follow at once, 16 bytes on in k come `k_stride` bytes later.
__device__ __forceinline__ uint64_t WgmmaPlainTile(uint32_t shared, int k_stride) {
  return WgmmaPlainAt(WgmmaPlainStart(shared, k_stride));
}

// Orders the accumulators' registers before the first product that uses them.
__device__ __forceinline__ void BeginWgmma() {
#ifdef MJP_HAVE_WGMMA
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  __trap();
#endif
}
__device__ __forceinline__ void CommitWgmma() {
#ifdef MJP_HAVE_WGMMA
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  __trap();
#endif
}
// Waits until at most `kPending` committed groups of products are still under way.
template <int kPending>
__device__ __forceinline__ void WaitWgmma() {
#ifdef MJP_HAVE_WGMMA
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#else
  __trap();
#endif
}

// Gives each thread of this warpgroup more registers, or takes some back: a multiple of 8.
template <bool kMore, int kRegisters>
__device__ __forceinline__ void SetRegisters() {
#ifdef MJP_HAVE_WGMMA
  if constexpr (kMore) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
  }
#else
  __trap();
#endif
}

#ifdef MJP_HAVE_WGMMA
// An instruction's operands: 8 to 64 accumulators, as text and as constraints.
#define MJP_TEXT8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define MJP_TEXT16 MJP_TEXT8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define MJP_TEXT32 \
  MJP_TEXT16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define MJP_TEXT48 \
  MJP_TEXT32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define MJP_TEXT64                                                                     \
  MJP_TEXT32                                                                           \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define MJP_TEXT128                                                                          \
  MJP_TEXT64                                                                                 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, "  \
  "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "    \
  "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, " \
  "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define MJP_SUMS4(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define MJP_SUMS8(i) MJP_SUMS4(i), MJP_SUMS4(i + 4)
#define MJP_SUMS16(i) MJP_SUMS8(i), MJP_SUMS8(i + 8)
#define MJP_SUMS32(i) MJP_SUMS16(i), MJP_SUMS16(i + 16)
#define MJP_WGMMA(n, type, sums, operands) \
  "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" sums "}, " operands ";"
#endif

// c += a b: 64 x 64, 16 of k. Element q of 8-column block j is c[4 j + q], as in mma.sync.
template <Format F>
__device__ __forceinline__ void Wgmma(float (&c)[32], uint64_t a, uint64_t b) {
#ifdef MJP_HAVE_WGMMA
  if constexpr (F == Format::kFp16) {
    asm volatile(MJP_WGMMA("64", "f16", MJP_TEXT32, "%32, %33, 1, 1, 1, 0, 0")
                 : MJP_SUMS32(0)
                 : "l"(a), "l"(b));
  } else {
    asm volatile(MJP_WGMMA("64", "bf16", MJP_TEXT32, "%32, %33, 1, 1, 1, 0, 0")
                 : MJP_SUMS32(0)
                 : "l"(a), "l"(b));
  }
#else
  __trap();
#endif
}

// The same with a in registers: each warp's 16 rows as mma.sync's fragment. They may change only
// once the products are done.
template <Format F>
__device__ __forceinline__ void Wgmma(float (&c)[32], const uint32_t (&a)[4], uint64_t b) {
#ifdef MJP_HAVE_WGMMA
  if constexpr (F == Format::kFp16) {
    asm volatile(MJP_WGMMA("64", "f16", MJP_TEXT32, "{%32, %33, %34, %35}, %36, 1, 1, 1, 0")
                 : MJP_SUMS32(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  } else {
    asm volatile(MJP_WGMMA("64", "bf16", MJP_TEXT32, "{%32, %33, %34, %35}, %36, 1, 1, 1, 0")
                 : MJP_SUMS32(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  }
#else
  __trap();
#endif
}

// 64 x 64, a in registers, in TF32 with 8 of k.
__device__ __forceinline__ void WgmmaTf32(float (&c)[32], const uint32_t (&a)[4], uint64_t b) {
#ifdef MJP_HAVE_WGMMA
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {" MJP_TEXT32
               "}, {%32, %33, %34, %35}, %36, 1, 1, 1;"
               : MJP_SUMS32(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#else
  __trap();
#endif
}

// 64 x 32, a in registers.
template <Format F>
__device__ __forceinline__ void Wgmma(float (&c)[16], const uint32_t (&a)[4], uint64_t b) {
#ifdef MJP_HAVE_WGMMA
  if constexpr (F == Format::kFp16) {
    asm volatile(MJP_WGMMA("32", "f16", MJP_TEXT16, "{%16, %17, %18, %19}, %20, 1, 1, 1, 0")
                 : MJP_SUMS16(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  } else {
    asm volatile(MJP_WGMMA("32", "bf16", MJP_TEXT16, "{%16, %17, %18, %19}, %20, 1, 1, 1, 0")
                 : MJP_SUMS16(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  }
#else
  __trap();
#endif
}

// c += a b: 64 x 96, 16 of k, elements as above.
template <Format F>
__device__ __forceinline__ void Wgmma(float (&c)[48], uint64_t a, uint64_t b) {
#ifdef MJP_HAVE_WGMMA
  if constexpr (F == Format::kFp16) {
    asm volatile(MJP_WGMMA("96", "f16", MJP_TEXT48, "%48, %49, 1, 1, 1, 0, 0")
                 : MJP_SUMS32(0), MJP_SUMS16(32)
                 : "l"(a), "l"(b));
  } else {
    asm volatile(MJP_WGMMA("96", "bf16", MJP_TEXT48, "%48, %49, 1, 1, 1, 0, 0")
                 : MJP_SUMS32(0), MJP_SUMS16(32)
                 : "l"(a), "l"(b));
  }
#else
  __trap();
#endif
}

// c += a b: 64 x 128, 16 of k, elements as above.
template <Format F>
__device__ __forceinline__ void Wgmma(float (&c)[64], uint64_t a, uint64_t b) {
#ifdef MJP_HAVE_WGMMA
  if constexpr (F == Format::kFp16) {
    asm volatile(MJP_WGMMA("128", "f16", MJP_TEXT64, "%64, %65, 1, 1, 1, 0, 0")
                 : MJP_SUMS32(0), MJP_SUMS32(32)
                 : "l"(a), "l"(b));
  } else {
    asm volatile(MJP_WGMMA("128", "bf16", MJP_TEXT64, "%64, %65, 1, 1, 1, 0, 0")
                 : MJP_SUMS32(0), MJP_SUMS32(32)
                 : "l"(a), "l"(b));
  }
#else
  __trap();
#endif
}

// c = a b (+ c, unless `first`): 64 x 256, 16 of k, elements as above.
template <Format F>
__device__ __forceinline__ void Wgmma(float (&c)[128], uint64_t a, uint64_t b, bool first) {
#ifdef MJP_HAVE_WGMMA
#define MJP_WGMMA_256(type)                                                             \
  "{\n.reg .pred add;\nsetp.eq.u32 add, %130, 0;\n" MJP_WGMMA("256", type, MJP_TEXT128, \
                                                              "%128, %129, add, 1, 1, 0, 0") "\n}"
  if constexpr (F == Format::kFp16) {
    asm volatile(MJP_WGMMA_256("f16")
                 : MJP_SUMS32(0), MJP_SUMS32(32), MJP_SUMS32(64), MJP_SUMS32(96)
                 : "l"(a), "l"(b), "r"(static_cast<uint32_t>(first)));
  } else {
    asm volatile(MJP_WGMMA_256("bf16")
                 : MJP_SUMS32(0), MJP_SUMS32(32), MJP_SUMS32(64), MJP_SUMS32(96)
                 : "l"(a), "l"(b), "r"(static_cast<uint32_t>(first)));
  }
#undef MJP_WGMMA_256
#else
  __trap();
#endif
}

#undef MJP_TEXT8
#undef MJP_TEXT16
#undef MJP_TEXT32
#undef MJP_TEXT48
#undef MJP_TEXT64
#undef MJP_TEXT128
#undef MJP_SUMS4
#undef MJP_SUMS8
#undef MJP_SUMS16
#undef MJP_SUMS32
#undef MJP_WGMMA

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_WGMMA_CUH_

#ifndef KERNELS_CUDA_ROW_KERNEL_CLUSTERS_EXCHANGE_CUH_
#define KERNELS_CUDA_ROW_KERNEL_CLUSTERS_EXCHANGE_CUH_

#include "kernels/cuda/megakernel/exchange/spin_watchdog.cuh"
#include "kernels/cuda/megakernel/exchange/whole_access.cuh"
#include "kernels/cuda/row_kernel/cta.cuh"
#include "kernels/cuda/row_kernel/products.cuh"

// What CTAs exchange across clusters, twice in a layer. Partial sums go through the cluster's
// shared memory to the CTA that owns the cluster's norm group, and count their bytes at a barrier
// there. Activations of a group go through L2 to the CTAs that have this slice of the in channels,
// one in each cluster: a tagged pair is two values and the number of their exchange, as in NCCL's
// LL protocol.
//
// Two places for each, used in turn, are enough. Whoever sends sums n + 2 to owner g has
// activations n + 1 of a group k, whose owner had sums n + 1 of all CTAs of its cluster. One of
// them multiplied slice g of activations n, so owner g has read its sums n. Whoever sends
// activations n + 2 had sums of CTAs with all slices of activations n + 1, whose owners had sums of
// CTAs that had received its activations n. The first layer multiplies x and waits for no other
// CTA: its owner has had the head's sums of its own cluster alone. So the head's sums have another
// place, that of shortcuts, which the same wait keeps free.

namespace mjp::row_kernel {

using megakernel::SpinWatchdog;

// The exchange of activations of layer `i` in pass `pass` of the launch; the head has none.
__device__ __forceinline__ int NumberOf(const Cta& cta, int pass, int i) {
  return pass * (cta.a.layer_count - 1) + i;
}

// Tries for sums, once a wait timed out, after which they do not come any more. A CTA that goes on
// without activations sends its sums after 1,024 polls of some 500 cycles; a try takes 30 or more.
inline constexpr int kLongWait = 1 << 15;

// The place of a layer's sums at the owner: two in turn, and for the head's that of shortcuts.
struct Sums {
  int place, phase;

  __device__ __forceinline__ Sums(const Cta& cta, int pass, int i) {
    const bool head = i + 1 == cta.a.layer_count;
    const int number = NumberOf(cta, pass, i);
    place = head ? 2 : number % 2;
    phase = (head ? pass : number / 2) % 2;
  }
  __device__ __forceinline__ int At(const SharedLayout& layout) const {
    return place == 2 ? layout.head_sums : layout.sums + place * layout.sums_turn;
  }
  __device__ __forceinline__ uint32_t Barrier(const Cta& cta) const {
    return SharedAddress(cta.shared + cta.a.shared.barriers) + place * 8;
  }
  // Waits, in epilogue warps of the owner, until `bytes` of sums are there; all of them do so.
  // is_lost(tries): whether they do not come any more. The launch ends with an error then.
  template <typename IsLost>
  __device__ __forceinline__ void Receive(const Cta& cta, int bytes, const IsLost& is_lost) const {
    if (threadIdx.x == 0) ExpectBytes(Barrier(cta), bytes);
    for (int tries = 0; !BarrierPassed(Barrier(cta), phase); ++tries)
      if (is_lost(tries)) Trap();
  }
  __device__ __forceinline__ void Receive(const Cta& cta, int bytes) const {
    Receive(cta, bytes, [](int) { return false; });
  }
};

// Stores eight bytes at an address that InCta gave. `barrier`, likewise, counts them.
__device__ __forceinline__ void StoreTwoInCta(uint32_t there, float x, float y, uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::
          "r"(there),
      "f"(x), "f"(y), "r"(barrier)
      : "memory");
#else
  __trap();
#endif
}

// Sends the partial sums of a unit to the owner, as mma leaves them (Layer::SumsAtOwner).
class SumsToOwner {
 public:
  __device__ __forceinline__ SumsToOwner(const Cta& cta, const Layer& s, const Sums& sums,
                                         const Unit& unit)
      : is_short_(s.length <= kPositionTile / 2) {
    const auto& layout = cta.a.shared;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int part = s.slices > 1 ? cta.rank : 0;
    const int of_tile = is_short_ ? unit.tile * kTileBytes / 2 + lane * 8
                                  : unit.tile * s.n_tiles * kTileBytes + lane * 16;
    const int at =
        (unit.shortcut ? layout.shortcut_sums : sums.At(layout)) + part * s.part_bytes + of_tile;
    there_ = InCta(SharedAddress(cta.shared + at), cta.slice);
    barrier_ = InCta(sums.Barrier(cta), cta.slice);
    PinRegister(there_), PinRegister(barrier_);
  }
  __device__ __forceinline__ void operator()(int j, const float (&four)[4]) const {
    if (!is_short_) {
      StoreInCtaAsync(there_ + j * kTileBytes,
                      make_uint4(__float_as_uint(four[0]), __float_as_uint(four[1]),
                                 __float_as_uint(four[2]), __float_as_uint(four[3])),
                      barrier_);
      return;
    }
    // lanes without positions take over the other eight channels
    const float x = __shfl_xor_sync(~0u, four[2], 2), y = __shfl_xor_sync(~0u, four[3], 2);
    const bool takes = threadIdx.x % 4 >= 2;
    StoreTwoInCta(there_, takes ? x : four[0], takes ? y : four[1], barrier_);
  }

 private:
  bool is_short_;
  uint32_t there_, barrier_;
};

// The activations of a layer, counted from the launch on.
struct Activations {
  int number;

  // Of norm group `group`.
  __device__ __forceinline__ uint2* Mailbox(const Cta& cta, int group) const {
    return cta.a.mailboxes + (number % 2 * kClusters + group) * cta.a.mailbox_pairs;
  }
};

// What brings this CTA's slice of a layer's output from L2 to shared memory: four values of a
// position for each thread of the MMA warps.
class Inbox {
 public:
  // `s`: the layer that made them.
  __device__ __forceinline__ Inbox(const Cta& cta, const Layer& s, const Activations& sent) {
    const int thread = static_cast<int>(threadIdx.x) - kRoleThreads;
    mine_ = thread * 2 < s.group_pairs;
    const int channels_log2 = Log2(s.channels), value = thread * 4;
    from_ = sent.Mailbox(cta, cta.rank) + thread * 2;
    to_ = SharedAddress(cta.shared) + s.output + (value >> channels_log2) * s.output_pitch +
          (value & (s.channels - 1)) * 2;
    PinRegister(to_);
  }
  // Returns in all MMA warps when the slice, which has number `tag`, is in shared memory.
  __device__ __forceinline__ void Receive(uint32_t tag, int* timed_out) const {
    if (mine_) {
      SpinWatchdog watchdog(timed_out);
      uint4 pairs = megakernel::Load16(from_);
      for (int tries = 0; pairs.y != tag || pairs.w != tag; ++tries) {
        if (watchdog.TimedOut(tries)) break;
        pairs = megakernel::Load16(from_);
      }
      asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to_), "r"(pairs.x), "r"(pairs.z)
                   : "memory");
    }
    asm volatile("bar.sync %0, %1;" ::"r"(kInputStored), "n"(kRoleThreads) : "memory");
  }

 private:
  bool mine_;
  uint32_t to_;
  const uint2* from_;
};

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_CLUSTERS_EXCHANGE_CUH_

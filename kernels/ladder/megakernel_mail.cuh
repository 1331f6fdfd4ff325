#ifndef KERNELS_LADDER_MEGAKERNEL_MAIL_CUH_
#define KERNELS_LADDER_MEGAKERNEL_MAIL_CUH_

#include "kernels/cuda/megakernel/exchange/tagged_value.cuh"
#include "kernels/ladder/megakernel_layer.cuh"

// Words that tell by themselves whether they have arrived, as in NCCL's LL protocol: a word and the
// epoch that wrote it are one 64-bit store. A reader polls the data; between blocks there is no
// flag, no fence and no barrier. The megakernel needs no bytes for epochs: it tags one of four
// partial sums with one bit, and clears activations, whose flag is not being zero
// (kernels/cuda/megakernel/exchange/mailbox.cuh).
//
// Two buffers suffice. In rung 4 whoever publishes layer n + 2 has received layer n + 1 of all
// blocks of its row. They are the readers of its layer n, and had received that before. From rung 5
// on there are two exchanges: megakernel_split_k.cuh.
//
// There is no deadlock, from rung 4 on. All blocks are resident, and a sender never waits for room.
// Each block, and each role of it, takes (layer, batch) in the same order, a product before its
// epilogue, and waits for earlier ones alone. So the earliest that is not done can go on.
//
// Memory order. All accesses are relaxed, and readers have no acquire fence. PTX's memory model
// asks for one; we rely on hardware, as the megakernel does (its README.md, Memory order). Loads
// are not speculated, and a load whose value was tested is over before a store that depends on it.

namespace mjp::ladder {

using megakernel::SpinWatchdog;

__device__ __forceinline__ void Send(uint64_t* to, uint32_t word, uint32_t epoch) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to),
               "l"(static_cast<uint64_t>(epoch) << 32 | word)
               : "memory");
}

// Waits for a thread's 8 words, at(i) each; all loads are under way at once.
template <typename At>
__device__ __forceinline__ void Receive(uint32_t (&words)[kThreadWords], uint32_t epoch,
                                        SpinWatchdog& watchdog, const At& at) {
  for (int tries = 0;; ++tries) {
    uint64_t mail[kThreadWords];
    bool arrived = true;
#pragma unroll
    for (int i = 0; i < kThreadWords; ++i)
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(mail[i]) : "l"(at(i)) : "memory");
#pragma unroll
    for (int i = 0; i < kThreadWords; ++i) {
      arrived = arrived && static_cast<uint32_t>(mail[i] >> 32) == epoch;
      words[i] = static_cast<uint32_t>(mail[i]);
    }
    if (arrived || watchdog.TimedOut(tries)) return;
  }
}

// Where the row begins that layer `layer` published; rows are counted over all batches.
__device__ __forceinline__ uint64_t* RowMail(const ChainArgs& a, int layer, int row) {
  return a.mail + static_cast<size_t>(layer % 2 * a.batches * kChainRows + row) * kRowWords;
}

// Publishes word `thread` of an output tile; the last layer's is the chain's result.
__device__ __forceinline__ void Publish(const ChainArgs& a, int layer, int row, int group,
                                        int thread, uint32_t word) {
  const int at = group * kTileWords + thread;
  if (layer + 1 == a.layers) {
    a.y[row * kRowWords + at] = word;
  } else {
    Send(RowMail(a, layer, row) + at, word, a.epoch + layer + 1);
  }
}

}  // namespace mjp::ladder

#endif  // KERNELS_LADDER_MEGAKERNEL_MAIL_CUH_

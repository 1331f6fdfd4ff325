// Rung 4: mail instead of the barrier. The store that carries a value is its flag, and a load that
// finds it is all that is left: one way to L2 and back, where rung 3 has three. A block waits for
// the values that it reads and for nothing else, so rows never wait for each other.

#include "kernels/ladder/megakernel_mail.cuh"

namespace mjp::ladder {
namespace {

__global__ void __launch_bounds__(kChainThreads) MailKernel(const ChainArgs a) {
  __shared__ TileMemory memory;
  const OwnTile own = TileOfBlock();
  SpinWatchdog watchdog(a.timed_out);
  memory.input.ClearHalo(threadIdx.x);
  for (int layer = 0; layer < a.layers; ++layer) {
    const auto word_of = [](int i) { return i * kChainThreads + static_cast<int>(threadIdx.x); };
    uint32_t words[kThreadWords];
    if (layer == 0) {
      for (int i = 0; i < kThreadWords; ++i) words[i] = a.x[own.row * kRowWords + word_of(i)];
    } else {
      const uint64_t* row = RowMail(a, layer - 1, own.row);
      Receive(words, a.epoch + layer, watchdog, [&](int i) { return row + word_of(i); });
    }
    for (int i = 0; i < kThreadWords; ++i) memory.input.Put(0, word_of(i), words[i]);
    Publish(a, layer, own.row, own.group, threadIdx.x, RunTile(a, layer, own, memory));
  }
}

}  // namespace

void ChainByMail(const ChainArgs& a, cudaStream_t stream) {
  LaunchResident<MailKernel>(a, kChainThreads, 0, stream);
}

}  // namespace mjp::ladder

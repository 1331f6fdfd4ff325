#include "apps/bench/gpu_timer.h"
#include "apps/bench/suites/ladder_chain.h"
#include "base/error.h"
#include "kernels/ladder/megakernel.cuh"

namespace mjp::app {
namespace {

namespace ladder = mjp::ladder;

constexpr int kLayers = 16, kMostBatches = 2;

ladder::ChainArgs Arguments(DeviceData& data, int batches) {
  constexpr size_t kRowsWords = size_t{kMostBatches} * ladder::kChainRows * ladder::kRowWords;
  constexpr size_t kTerms = size_t{kLayers} * ladder::kChainChannels;
  ladder::ChainArgs a;
  a.layers = kLayers, a.batches = batches;
  a.x = static_cast<uint32_t*>(data.Stored(2 * kRowsWords));
  a.weights =
      static_cast<uint4*>(data.Stored(kTerms * ladder::kChainChannels * ladder::kChainTaps));
  a.bias = data.Floats(kTerms), a.scale = data.Floats(kTerms), a.shift = data.Floats(kTerms);
  a.y = data.Zeros<uint32_t>(kRowsWords);
  a.activations = data.Zeros<uint32_t>(2 * kRowsWords);
  a.mail = data.Zeros<uint64_t>(2 * kRowsWords);
  a.sums = data.Zeros<uint64_t>(2 * kRowsWords * ladder::kChainSlices);
  a.timed_out = data.Zeros<int>(1);
  return a;
}

// Whether a wait of any launch so far lasted seconds: its times, and those behind it, tell nothing.
bool TimedOut(const ladder::ChainArgs& args) {
  int timed_out = 0;
  mjp::CheckCuda(cudaMemcpy(&timed_out, args.timed_out, sizeof(timed_out), cudaMemcpyDefault),
                 "flag of a chain");
  return timed_out != 0;
}

using Launcher = void (*)(const ladder::ChainArgs&, cudaStream_t);

BenchRow Rung(const std::string& name, double seconds, int batches, const Launcher launch) {
  mjp::DeviceArena arena;
  DeviceData data(arena, mjp::Format::kFp16);
  Arguments(data, batches);
  arena.Seal();
  ladder::ChainArgs args = Arguments(data, batches);
  const std::string what = "16 layers: " + name;
  try {
    BenchRow row;
    if (launch) {
      row = TimeStream("ladder", what, seconds, [&](cudaStream_t stream) {
        launch(args, stream);
        args.epoch += kLayers;
      });
    } else {
      const mjp::CudaGraphExec graph = ladder::GraphOfLaunches(args);
      row = TimeStream("ladder", what, seconds, [&](cudaStream_t stream) {
        mjp::CheckCuda(cudaGraphLaunch(graph.get(), stream), "graph");
      });
    }
    if (TimedOut(args))
      return Skipped("ladder", what,
                     "a value did not come for 2 s: blocks of the chain were not running; start "
                     "the same command again while the GPU has no other work");
    row.items = batches * ladder::kChainRows, row.unit = "rows";
    return row;
  } catch (const mjp::Error& error) {
    return Skipped("ladder", what, error.what());
  }
}

}  // namespace

BenchRows BenchChainLadder(double seconds) {
  return {Rung("1 a launch per layer", seconds, 1, ladder::ChainOfLaunches),
          Rung("2 CUDA graph", seconds, 1, nullptr),
          Rung("3 one launch, barrier of the grid", seconds, 1, ladder::ChainByGridBarrier),
          Rung("4 mail instead of the barrier", seconds, 1, ladder::ChainByMail),
          Rung("5 split-K, owners run the epilogue", seconds, 1, ladder::ChainBySplitK),
          Rung("6 weights prefetched across layers", seconds, 1, ladder::ChainByPrefetch),
          Rung("7 MMA warps and epilogue warps", seconds, 1, ladder::ChainByRoles),
          Rung("8 two row batches", seconds, kMostBatches, ladder::ChainByRowBatches)};
}

}  // namespace mjp::app

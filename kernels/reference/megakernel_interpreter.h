#ifndef KERNELS_REFERENCE_MEGAKERNEL_INTERPRETER_H_
#define KERNELS_REFERENCE_MEGAKERNEL_INTERPRETER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/megakernel/megakernel.cuh"

// The megakernel's protocol without its arithmetic, on the CPU: every CTA's warps as actors that
// store, clear, poll, fence and wait at barriers in the order in which the kernel does, under
// random interleavings, where a store reaches the others late unless a fence is behind it. A value
// is the name of who should have written it, so that a reader sees what it took.

namespace mjp::reference {

// What the kernel is launched with, as MegakernelLayers plans it.
struct MegakernelProgram {
  std::vector<megakernel::Layer> layers;  // with addresses, mailboxes and the fence
  bool warp_specialized = false;
  int row_batches = 1;
  int rows = 1;    // of the launch, all environments' and all of their windows'
  int window = 0;  // 0: step by step
  int ctas = 0;  // of the portable kernel, which stand for those of the schedule; 0: the other one
  int row_slots = megakernel::kRowsPerBatch;  // of the portable kernel: that it uses
};

// A fault that is planted, to show that it is found.
struct MegakernelFault {
  enum Kind {
    kNone,
    kOneMailboxBuffer,         // instead of two in turn
    kBatchesShareMailboxes,    // the second row batch uses the first one's
    kInputNotAwaited,          // a layer's MMA warps take what is there
    kSumsNotAwaited,           // a layer's epilogue warps do
    kPublishedBarrierLeftOut,  // between a layer's epilogue warps and the next one's MMA warps
    kSentBarrierLeftOut,       // between a layer's MMA warps and its epilogue warps
    kOwnBufferCleared,         // that of this pass instead of the next one's
    kNothingCleared,
    kSliceTwice,            // a CTA multiplies its neighbour's K slice instead of its own
    kNoBarrierBehindFence,  // where warps are not specialised
    kHeadSentSooner,        // the head's partial sums, behind a layer before the last one
    kFencesNotAwaited,      // by CTAs without an output tile
    kUnusedRowAwaited,      // a layer's input is awaited of row slots that are not used
  };
  Kind kind = kNone;
  int layer = 0;  // where it is, if it is of one layer
};

struct MegakernelRun {
  uint64_t seed = 0;  // of the interleaving
  int passes = 3, launches = 1;
  MegakernelFault fault;
};

struct MegakernelReport {
  std::vector<std::string> violations;  // the first of each kind, a few; empty: none
  int skew = 0;                         // most passes that a CTA was ahead of another
  int64_t values = 0;                   // that were read
};

// Whether every output tile of every layer is the sum of all K slices, each once (I1): what is
// wrong, or nothing.
std::vector<std::string> CheckTiles(const MegakernelProgram& program, const MegakernelFault& fault);

// Runs the program once. Reports a value of another epoch that was taken (I2), a value that is
// overwritten before all its readers have it (I4), a clear that a reader may not see (I5), a
// barrier at which one side comes twice, a CTA more than a pass ahead (I3), and a deadlock. What
// orders two events is followed with vector clocks, so that these are found in whatever order they
// happen. Throws Unsupported for programs that it cannot run.
MegakernelReport InterpretMegakernel(const MegakernelProgram& program, const MegakernelRun& run);

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_MEGAKERNEL_INTERPRETER_H_

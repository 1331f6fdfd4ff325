#ifndef KERNELS_REFERENCE_MEGAKERNEL_PROGRAM_H_
#define KERNELS_REFERENCE_MEGAKERNEL_PROGRAM_H_

#include <set>
#include <vector>

#include "kernels/reference/megakernel_interpreter.h"

// What each actor of the interpreter does in a pass: derived from the layers, by other code than
// the kernel's.

namespace mjp::reference {

// Two actors of a CTA: its MMA warps and its epilogue warps; or, where warps are not specialised,
// those threads that have values of every output tile and those that have none of small ones.
inline constexpr int kActors = 2 * megakernel::kCtas;

// Where a value stands. Its parts are stored by different threads or CTAs.
struct Location {
  enum Kind { kActivation, kMailbox, kHead, kShared };
  Kind kind = kShared;
  int layer = 0;
  int cell = 0, parts = 1;  // cells of the first buffer
  int buffer_stride = 0;    // cells to the other buffer
  int uses = 1, index = 0;  // of a mailbox in a pass
  // Of every pass: which operation of an actor reads, stores or clears which parts.
  struct Touch {
    int actor, op, first, count;
  };
  std::vector<Touch> reads, stores, clears;
};

struct Access {
  int location, first, count;  // parts
};

enum Barrier { kPass, kSent, kPublished = kSent + 2, kCta = kPublished + 2, kBarriers };

struct Op {
  enum Kind { kRead, kStore, kClear, kFence, kArrive, kSync };
  enum When { kEveryPass, kFirstPass, kAllButLastPass };  // of a launch
  Kind kind;
  int layer = 0;
  When when = kEveryPass;
  int barrier = 0;
  bool awaited = true;     // kRead: false where a fault takes what is there
  int first = 0, end = 0;  // accesses
};

struct CompiledProgram {
  std::vector<Location> locations;
  std::vector<Access> accesses;
  std::vector<Op> ops[kActors];
  int cells = 0;
};

// The part of `layer`'s GEMM that a CTA makes, where `fault` may be planted.
megakernel::GemmTile GemmTileOfCta(const MegakernelProgram& program, int layer, int cta,
                                   const MegakernelFault& fault);
// The CTAs of the schedule that a CTA stands for, in the order in which it takes them: itself; in
// the portable kernel of a norm group those of rows r and r + 8 one behind the other, and the first
// CTAs stand for one more than the others.
std::vector<int> TilesOfCta(const MegakernelProgram& program, int cta);
// What the portable kernel takes of a layer as one GEMM tile: one of its CTA's, or a pair's.
// repeats: the input is that of the one before.
struct GemmOfCta {
  std::vector<int> tiles;
  bool repeats;
};
std::vector<GemmOfCta> GemmsOfCta(const MegakernelProgram& program, int layer,
                                  const std::vector<int>& tiles);
// Whose sampler steps a CTA of `tiles` takes: those of the rows of `used`, and all where it stands
// for more than a pair.
std::set<int> StepRows(const MegakernelProgram& program, const std::vector<int>& used,
                       const std::vector<int>& tiles);
// The end of a GEMM tile's rows that are used.
int EndRow(const MegakernelProgram& program, const megakernel::Layer& layer,
           const megakernel::GemmTile& gemm, const MegakernelFault& fault);
inline constexpr int kHalfTileValues = 512;  // of an output tile, that 128 threads have
int OutputTileValues(const megakernel::Layer& layer);
// Whether half of the threads have an output tile of every layer.
bool TilesAreSmall(const MegakernelProgram& program);
// Throws Unsupported.
CompiledProgram Compile(const MegakernelProgram& program, const MegakernelFault& fault);

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_MEGAKERNEL_PROGRAM_H_

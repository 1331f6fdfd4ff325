// The megakernel's invariants I1 to I5, held by an interpreter of its layers that runs them under
// random interleavings; and faults that it must find.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

#include "tests/support/gpu/megakernel_network.h"

namespace {

using mjp::megakernel::Layer;
using mjp::reference::MegakernelFault;
using mjp::reference::MegakernelProgram;
using mjp::reference::MegakernelReport;
using mjp::reference::MegakernelRun;
using mjp_test::PlannedUnet;

constexpr int kStyles = 16;  // of interleavings, which the seed's low bits choose

struct Case {
  const char* name;
  std::vector<int> down_dims;
  int rows, window = 0, horizon = 16;
  int ctas = 0;  // of the portable form
};

// All that the kernel runs: warps specialised or not, one row batch or two, rows that are not used.
const Case kCases[] = {
    {"notebook, one row", {256, 512, 1024}, 1},
    {"notebook, 2 rows", {256, 512, 1024}, 2},
    {"notebook, 16 rows", {256, 512, 1024}, 16},
    {"notebook, 17 rows", {256, 512, 1024}, 17},
    {"notebook, 32 rows", {256, 512, 1024}, 32},
    {"notebook, horizon 8", {256, 512, 1024}, 19, 0, 8},
    {"notebook, a window of 16", {256, 512, 1024}, 16, 16},
    {"notebook, two windows of 16", {256, 512, 1024}, 32, 16},
    {"LeRobot, one row", {512, 1024, 2048}, 1},
    {"LeRobot, 2 rows", {512, 1024, 2048}, 2},
    {"LeRobot, 16 rows", {512, 1024, 2048}, 16},
    {"LeRobot, a window of 16", {512, 1024, 2048}, 16, 16},
    {"a level of few channels", {128, 256, 1024}, 3},
    {"small tiles, unspecialized", {256, 512, 2048}, 5},
    {"portable, 108 CTAs", {256, 512, 1024}, 16, 0, 16, 108},
    {"portable, a window on 82 CTAs", {256, 512, 1024}, 16, 16, 16, 82},
    {"portable, 20 CTAs, one row", {256, 512, 1024}, 1, 0, 16, 20},
    {"portable, 8 CTAs, 3 rows", {256, 512, 1024}, 3, 0, 16, 8},
    {"portable, 128 CTAs", {256, 512, 1024}, 16, 0, 16, 128},
    {"portable, LeRobot on 108 CTAs", {512, 1024, 2048}, 1, 0, 16, 108},
    {"portable, LeRobot, a window on 20 CTAs", {512, 1024, 2048}, 16, 16, 16, 20},
    {"few channels, one row", {128, 256, 512}, 1},
    {"few channels, 16 rows", {128, 256, 512}, 16},
    {"few channels, 32 rows", {128, 256, 512}, 32},
    {"few channels, two windows of 16", {128, 256, 512}, 32, 16},
    {"portable, few channels on 108 CTAs", {128, 256, 512}, 16, 0, 16, 108},
    {"portable, few channels, a window on 20 CTAs", {128, 256, 512}, 16, 16, 16, 20},
    {"portable, 108 CTAs, one row", {256, 512, 1024}, 1, 0, 16, 108},
    {"portable, 108 CTAs, 3 rows", {256, 512, 1024}, 3, 0, 16, 108},
    {"portable, 114 CTAs, a window of 8", {256, 512, 1024}, 8, 8, 16, 114},
    {"portable, few channels on 108 CTAs, one row", {128, 256, 512}, 1, 0, 16, 108},
    {"portable, LeRobot on 108 CTAs, 2 rows", {512, 1024, 2048}, 2, 0, 16, 108},
    {"portable, few channels on 82 CTAs, 3 rows", {128, 256, 512}, 3, 0, 16, 82},
};

const PlannedUnet& Unet(const Case& c) {
  static std::map<std::pair<std::vector<int>, int>, PlannedUnet> unets;
  const auto key = std::pair{c.down_dims, c.horizon};
  return unets.try_emplace(key, c.down_dims, c.horizon).first->second;
}
MegakernelProgram Program(const Case& c, bool* runs) {
  return Unet(c).Program(c.rows, c.window, runs, c.ctas);
}

std::string First(const std::vector<std::string>& violations) {
  return violations.empty() ? "" : violations.front();
}

class MegakernelProtocol : public testing::TestWithParam<Case> {};

TEST_P(MegakernelProtocol, KeepsItsInvariants) {
  bool runs;
  const MegakernelProgram program = Program(GetParam(), &runs);
  ASSERT_TRUE(runs) << "the kernel does not run it";
  EXPECT_EQ(First(mjp::reference::CheckTiles(program, {})), "");
  int skew = 0;
  int64_t values = 0;
  for (int style = 0; style < kStyles; style += 5) {
    MegakernelRun run;
    run.seed = 1000 + style;
    run.launches = style == 0 ? 2 : 1;
    const MegakernelReport report = InterpretMegakernel(program, run);
    ASSERT_EQ(First(report.violations), "") << "seed " << run.seed;
    skew = std::max(skew, report.skew), values += report.values;
  }
  EXPECT_EQ(skew, 1) << "no CTA was ever ahead: nothing was interleaved";
  EXPECT_GT(values, 100'000);
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, MegakernelProtocol, testing::ValuesIn(kCases), CaseName);

// What PlaceFence has found: the layer with the fence.
int FenceLayer(const MegakernelProgram& program) {
  const auto fence = [](const Layer& l) { return l.fence; };
  return static_cast<int>(std::find_if(program.layers.begin(), program.layers.end(), fence) -
                          program.layers.begin());
}
// The first layer of which `holds` is true.
template <typename Holds>
int FirstLayer(const MegakernelProgram& program, const Holds& holds) {
  return static_cast<int>(std::find_if(program.layers.begin(), program.layers.end(), holds) -
                          program.layers.begin());
}
bool SplitsK(const Layer& l) { return l.mailbox.tile_values > 0 && l.split_k_log2 > 0; }

// A fault in the program or in how it is run, and what must be said of it.
struct Mutation {
  const char* name;
  Case on;
  std::function<void(MegakernelProgram&, MegakernelFault&)> plant;
  const char* says;
};
void Plant(MegakernelFault& fault, MegakernelFault::Kind kind, int layer = 0) {
  fault.kind = kind, fault.layer = layer;
}

const Case kOneBatch = kCases[2], kTwoBatches = kCases[4], kUnspecialized = kCases[10];
const Case kWindow = kCases[6];
// tiles of 512 values, of which half of the threads have none
const Case kShort = kCases[13], kPortable = kCases[14], kFewCtas = kCases[20];
const Case kUnusedRows = kCases[27];  // most CTAs have no output tile
const Case kAllSlots = kCases[30];    // a row, and 16 row slots
const char kOverwritten[] = "may not have read", kStale[] = "takes the value in layer";
const char kUnfenced[] = "no fence of", kBehind[] = "two passes behind";

const Mutation kMutations[] = {
    {"one mailbox buffer", kOneBatch,
     [](MegakernelProgram&, MegakernelFault& f) { Plant(f, MegakernelFault::kOneMailboxBuffer); },
     kOverwritten},
    {"one mailbox buffer, unspecialized", kUnspecialized,
     [](MegakernelProgram&, MegakernelFault& f) { Plant(f, MegakernelFault::kOneMailboxBuffer); },
     kOverwritten},
    {"batches share mailboxes", kTwoBatches,
     [](MegakernelProgram&, MegakernelFault& f) {
       Plant(f, MegakernelFault::kBatchesShareMailboxes);
     },
     kOverwritten},
    {"two layers share a use", kOneBatch,
     [](MegakernelProgram& p, MegakernelFault&) {
       const int first = FirstLayer(p, SplitsK);
       for (size_t i = first + 1; i < p.layers.size(); ++i)
         if (p.layers[i].mailbox.offset == p.layers[first].mailbox.offset &&
             p.layers[i].mailbox.tile_values > 0)
           return void(p.layers[i].mailbox.index = p.layers[first].mailbox.index);
     },
     kStale},
    {"no fence", kOneBatch,
     [](MegakernelProgram& p, MegakernelFault&) { p.layers[FenceLayer(p)].fence = false; },
     kUnfenced},
    {"no fence, two batches", kTwoBatches,
     [](MegakernelProgram& p, MegakernelFault&) { p.layers[FenceLayer(p)].fence = false; },
     kUnfenced},
    {"fence a layer later", kOneBatch,
     [](MegakernelProgram& p, MegakernelFault&) {
       const int at = FenceLayer(p);
       p.layers[at].fence = false, p.layers[at + 1].fence = true;
     },
     kUnfenced},
    {"fence a layer later, unspecialized", kUnspecialized,
     [](MegakernelProgram& p, MegakernelFault&) {
       const int at = FenceLayer(p);
       p.layers[at].fence = false, p.layers[at + 1].fence = true;
     },
     kUnfenced},
    {"fence at the end", kWindow,
     [](MegakernelProgram& p, MegakernelFault&) {
       p.layers[FenceLayer(p)].fence = false, p.layers.back().fence = true;
     },
     kUnfenced},
    {"one mailbox buffer, portable", kPortable,
     [](MegakernelProgram&, MegakernelFault& f) { Plant(f, MegakernelFault::kOneMailboxBuffer); },
     kOverwritten},
    {"no fence, portable", kFewCtas,
     [](MegakernelProgram& p, MegakernelFault&) { p.layers[FenceLayer(p)].fence = false; },
     kUnfenced},
    {"no barrier behind the fence, portable", kPortable,
     [](MegakernelProgram&, MegakernelFault& f) {
       Plant(f, MegakernelFault::kNoBarrierBehindFence);
     },
     kUnfenced},
    {"no fence, portable, unused rows", kUnusedRows,
     [](MegakernelProgram& p, MegakernelFault&) { p.layers[FenceLayer(p)].fence = false; },
     kUnfenced},
    {"fences not awaited", kUnusedRows,
     [](MegakernelProgram&, MegakernelFault& f) { Plant(f, MegakernelFault::kFencesNotAwaited); },
     kUnfenced},
    {"rows that nobody publishes", kUnusedRows,
     [](MegakernelProgram& p, MegakernelFault& f) {
       Plant(f, MegakernelFault::kUnusedRowAwaited, FirstLayer(p, SplitsK));
     },
     "for ever"},
    {"row slots left out where CTAs have no GEMM tile", kAllSlots,
     [](MegakernelProgram& p, MegakernelFault&) { p.row_slots = 1; }, kOverwritten},
    {"no barrier behind the fence", kShort,
     [](MegakernelProgram&, MegakernelFault& f) {
       Plant(f, MegakernelFault::kNoBarrierBehindFence);
     },
     kUnfenced},
    {"a K slice twice", kOneBatch,
     [](MegakernelProgram& p, MegakernelFault& f) {
       Plant(f, MegakernelFault::kSliceTwice, FirstLayer(p, SplitsK));
     },
     "has been stored in this pass"},
    {"input not awaited", kOneBatch,
     [](MegakernelProgram&, MegakernelFault& f) { Plant(f, MegakernelFault::kInputNotAwaited, 7); },
     "takes "},
    {"sums not awaited", kOneBatch,
     [](MegakernelProgram& p, MegakernelFault& f) {
       Plant(f, MegakernelFault::kSumsNotAwaited, FirstLayer(p, SplitsK));
     },
     "takes "},
    {"no barrier behind publishing", kOneBatch,
     [](MegakernelProgram& p, MegakernelFault& f) {
       Plant(f, MegakernelFault::kPublishedBarrierLeftOut, FenceLayer(p) + 1);
     },
     kUnfenced},
    {"no barrier behind sending", kOneBatch,
     [](MegakernelProgram& p, MegakernelFault& f) {
       Plant(f, MegakernelFault::kSentBarrierLeftOut,
             FirstLayer(p, [](const Layer& l) { return l.cta_local; }));
     },
     "takes "},
    {"clears of this pass", kOneBatch,
     [](MegakernelProgram&, MegakernelFault& f) { Plant(f, MegakernelFault::kOwnBufferCleared); },
     kStale},
    {"no clears", kOneBatch,
     [](MegakernelProgram&, MegakernelFault& f) { Plant(f, MegakernelFault::kNothingCleared); },
     "nothing was cleared"},
    {"head sent sooner", kOneBatch,
     [](MegakernelProgram&, MegakernelFault& f) { Plant(f, MegakernelFault::kHeadSentSooner); },
     kOverwritten},
    {"head sent sooner, a window", kWindow,
     [](MegakernelProgram&, MegakernelFault& f) { Plant(f, MegakernelFault::kHeadSentSooner); },
     kOverwritten},
    {"head sent sooner, portable", kPortable,
     [](MegakernelProgram&, MegakernelFault& f) { Plant(f, MegakernelFault::kHeadSentSooner); },
     kOverwritten},
};

class MegakernelFaults : public testing::TestWithParam<Mutation> {};

TEST_P(MegakernelFaults, AreFound) {
  bool runs;
  MegakernelProgram program = Program(GetParam().on, &runs);
  ASSERT_TRUE(runs);
  MegakernelRun run;
  GetParam().plant(program, run.fault);
  for (run.seed = 0; run.seed < kStyles; run.seed += 10) {
    const MegakernelReport report = InterpretMegakernel(program, run);
    ASSERT_FALSE(report.violations.empty()) << "not found, seed " << run.seed;
    const std::string all = testing::PrintToString(report.violations);
    EXPECT_NE(all.find(GetParam().says), std::string::npos) << all;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MegakernelFaults, testing::ValuesIn(kMutations),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

// Those without a row are left out where nothing can be overwritten: with four levels a CTA without
// output tiles cannot know that of the last skip; with few channels some have no GEMM tile.
TEST(PortableRowSlots, AreLeftOutWhereThatDoesNoHarm) {
  for (const auto& [down_dims, slots] : {std::pair<std::vector<int>, int>{{256, 512, 1024}, 1},
                                         {{512, 1024, 2048}, 1},
                                         {{128, 256, 512}, 16},
                                         {{128, 256, 512, 1024}, 16}}) {
    bool runs;
    EXPECT_EQ(PlannedUnet(down_dims).Program(1, 0, &runs, 108).row_slots, slots) << down_dims[0];
    EXPECT_TRUE(runs);
  }
}

// The check of the tiles sees what the interpreter sees as a value that never comes.
TEST(MegakernelTiles, ASliceThatIsMadeTwiceIsFound) {
  bool runs;
  const MegakernelProgram program = Program(kOneBatch, &runs);
  for (size_t i = 0; i < program.layers.size(); ++i) {
    if (!SplitsK(program.layers[i])) continue;
    MegakernelFault fault;
    Plant(fault, MegakernelFault::kSliceTwice, static_cast<int>(i));
    EXPECT_NE(testing::PrintToString(CheckTiles(program, fault)).find("twice"), std::string::npos)
        << i;
  }
}

// A network without a layer for which a CTA waits for those of all rows, since each has too many
// positions for that: the planner refuses it.
TEST(MegakernelTiles, SkewThatHasNoBoundIsFound) {
  bool runs;
  MegakernelProgram program = PlannedUnet({128, 256, 512}, 32).Program(16, 0, &runs);
  EXPECT_FALSE(runs);
  for (Layer& layer : program.layers) layer.fence = true;
  std::string all;
  for (uint64_t seed = 0; seed < kStyles; seed += 5) {
    MegakernelRun run;
    run.seed = seed, run.passes = 4;
    all += testing::PrintToString(InterpretMegakernel(program, run).violations);
  }
  EXPECT_NE(all.find(kBehind), std::string::npos) << all;
}

}  // namespace

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/cuda/megakernel/megakernel.cuh"
#include "kernels/cuda/megakernel/portable/portable.cuh"

namespace {

namespace megakernel = mjp::megakernel;
using megakernel::Layer;

Layer Convolution(int in_length, int in_c, int out_c, bool residual, int skip_channels = 0) {
  Layer s;
  s.shape.in_length = s.shape.out_length = in_length;
  s.shape.in_c = in_c, s.shape.out_c = out_c;
  s.shape.taps = 5, s.shape.pad = 2, s.shape.shortcut = residual;
  s.source_channels = in_c - skip_channels;
  return s;
}

Layer Down(int in_length, int channels) {
  Layer s = Convolution(in_length, channels, channels, false);
  s.shape.out_length = in_length / 2;
  s.shape.taps = 3, s.shape.stride = 2, s.shape.pad = 1;
  return s;
}

Layer Up(int in_length, int channels) {
  Layer s = Convolution(in_length, channels, channels, false);
  s.shape.taps = 2, s.shape.phases = 2, s.shape.pad = 0;
  return s;
}

// Every product is made once, by a CTA whose group sends its partial sums to the owners of the
// tiles.
void CheckWork(const Layer& s) {
  const mjp::NormConvShape& shape = s.shape;
  const int group_channels = shape.out_c / megakernel::kNormGroups;
  std::set<std::tuple<int, int, int, int>> made;  // row, phase, out tile, K slice
  for (int cta = 0; cta < megakernel::kCtas; ++cta) {
    const megakernel::OutputTile tile = megakernel::TileOfCta(cta);
    const int row = tile.row_slot;
    const megakernel::GemmTile gemm = megakernel::GemmTileOf(s, tile);
    if (!gemm.has_work) continue;
    const int groups = 1 << s.groups_log2, rows = 1 << s.rows_log2;
    const int out = gemm.group_block * groups * group_channels + gemm.out;
    ASSERT_LE(out + megakernel::kTileChannels, shape.out_c);
    ASSERT_GE(row, gemm.row0);
    ASSERT_LT(row, gemm.row0 + rows);
    ASSERT_EQ(tile.group / groups, gemm.group_block);
    ASSERT_LE(gemm.out + megakernel::kTileChannels, groups * group_channels);
    for (int r = 0; r < rows; ++r)
      ASSERT_TRUE(made.insert({gemm.row0 + r, gemm.phase, out, gemm.k_slice}).second)
          << "twice: CTA " << cta;
  }
  const size_t all = size_t{megakernel::kRowsPerBatch} * shape.phases *
                     (shape.out_c / megakernel::kTileChannels) * (shape.in_c / s.k_slice);
  EXPECT_EQ(made.size(), all) << "something is made by no CTA";
}

void CheckPlan(const Layer& layer) {
  Layer s = layer;
  ASSERT_TRUE(megakernel::PlanLayer(s));
  CheckWork(s);
  EXPECT_EQ(s.k_slice << s.split_k_log2, s.shape.in_c);
  EXPECT_EQ(s.k_slice % megakernel::kBlockK, 0) << "a K slice is whole K blocks";
  EXPECT_EQ(s.source_channels % megakernel::kBlockK, 0) << "a K block is of one source";
  EXPECT_LE(s.shape.in_length << s.rows_log2, megakernel::kMmaThreads)
      << "a thread's vectors are evenly apart";
  const int positions = s.shape.out_length << s.rows_log2;
  EXPECT_TRUE(positions >= 4 && positions <= 64) << positions;
  EXPECT_TRUE(s.k_slice == megakernel::kBlockK || (positions == 64 && s.shape.stride == 1))
      << "only such K slices have several K blocks";
  const int values = s.shape.out_c / megakernel::kNormGroups * s.shape.out_length * s.shape.phases;
  EXPECT_EQ(s.mailbox.tile_values, values << s.split_k_log2);
  EXPECT_EQ(s.shortcut_mailbox.tile_values, s.shape.shortcut ? s.mailbox.tile_values : 0);
  EXPECT_EQ(values % 128, 0) << "a tile is whole warps of four values per thread";
}

// Every convolution of a U-Net of three levels from `base` channels on.
void CheckNetwork(int base) {
  SCOPED_TRACE(base);
  for (int level = 0; level < 3; ++level) {
    SCOPED_TRACE(level);
    const int channels = base << level, length = 16 >> level;
    CheckPlan(Convolution(length, channels, channels, false));
    if (level == 2) break;
    CheckPlan(Down(length, channels));
    CheckPlan(Convolution(length / 2, channels, channels * 2, true));
  }
  for (int level = 1; level >= 0; --level) {
    SCOPED_TRACE(level);
    const int channels = base << level, length = 8 >> level;
    CheckPlan(Convolution(length, channels * 4, channels, true, channels * 2));
    CheckPlan(Convolution(length, channels, channels, false));
    CheckPlan(Up(length, channels));
  }
}

TEST(MegakernelSchedule, EveryProductIsMadeOnce) {
  for (const int base : {128, 256, 512}) CheckNetwork(base);
}

TEST(MegakernelSchedule, SkewIsBoundedWhereACtaGroupSpansAllRows) {
  const auto bounded = [](std::vector<Layer> layers) {
    for (Layer& s : layers) EXPECT_TRUE(megakernel::PlanLayer(s));
    return megakernel::SkewIsBounded(layers);
  };
  const auto network = [](int base) {
    const auto level = [&](int i) { return Convolution(16 >> i, base << i, base << i, false); };
    return std::vector<Layer>{level(0), level(1), level(2)};
  };
  EXPECT_TRUE(bounded(network(256)));
  EXPECT_TRUE(bounded(network(512)));
  EXPECT_FALSE(bounded(network(128))) << "CTA groups of 4 of the 16 rows at most";
  Layer first = Convolution(16, 0, 256, false);  // the first convolution has no products
  EXPECT_FALSE(bounded({first}));
}

TEST(MegakernelSchedule, OneLayerIsMadeToSpanAllRows) {
  std::vector<Layer> layers = {Convolution(16, 0, 128, false), Convolution(16, 128, 128, false),
                               Convolution(4, 512, 512, false), Convolution(4, 512, 512, false),
                               Up(4, 512)};
  for (Layer& s : layers) ASSERT_TRUE(megakernel::PlanLayer(s));
  ASSERT_FALSE(megakernel::SkewIsBounded(layers));
  megakernel::SpanAllRowsOnce(layers);
  EXPECT_TRUE(megakernel::SkewIsBounded(layers));
  for (size_t i = 1; i < layers.size(); ++i) {
    CheckWork(layers[i]);
    EXPECT_EQ(1 << layers[i].rows_log2 == megakernel::kRowsPerBatch, i == 3) << i;
  }
  megakernel::SpanAllRowsOnce(layers);
  EXPECT_NE(1 << layers[2].rows_log2, megakernel::kRowsPerBatch) << "one is enough";
  layers.resize(2);
  megakernel::SpanAllRowsOnce(layers);
  EXPECT_FALSE(megakernel::SkewIsBounded(layers)) << "16 positions of 16 rows are too many";
}

// Of the 128 CTAs, where a layer has fewer GEMM tiles than its CTA groups have members.
TEST(MegakernelSchedule, EveryCtaMultipliesInSomeLayer) {
  std::vector<Layer> layers = {Convolution(16, 0, 256, false), Convolution(16, 256, 256, false)};
  for (Layer& s : layers) ASSERT_TRUE(megakernel::PlanLayer(s));
  EXPECT_TRUE(megakernel::EveryCtaMultiplies(layers));
  layers[1].m_tiles_log2 = 0, layers[1].split_k_log2 = 0;
  EXPECT_FALSE(megakernel::EveryCtaMultiplies(layers));
  EXPECT_FALSE(megakernel::EveryCtaMultiplies({layers[0]})) << "x is not multiplied";
}

TEST(MegakernelSchedule, AFenceStandsBeforeTheLastLayerThatSpansAllRows) {
  std::vector<Layer> layers = {
      Convolution(16, 0, 256, false),    Convolution(16, 256, 256, false),
      Convolution(8, 512, 512, false),   Convolution(4, 512, 1024, true),
      Convolution(4, 1024, 1024, false), Convolution(4, 1024, 1024, false)};
  for (Layer& s : layers) ASSERT_TRUE(megakernel::PlanLayer(s));
  ASSERT_TRUE(megakernel::SkewIsBounded(layers));
  megakernel::PlaceFence(layers);
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i].fence, i == 4) << i;
    EXPECT_EQ(1 << layers[i].rows_log2 == megakernel::kRowsPerBatch, i > 3) << i;
  }
}

// A CTA whose K slice is of the skip alone reuses a mailbox buffer: it must know, by a layer
// between of as many rows, that their owners have received what was there.
TEST(MegakernelSchedule, TwoMailboxBuffersSufficeWhereALayerBetweenSpansTheRows) {
  std::vector<Layer> layers = {Convolution(16, 0, 256, false), Convolution(4, 512, 512, false),
                               Convolution(4, 512, 512, false), Convolution(4, 512, 512, false),
                               Convolution(4, 1024, 512, true, 512)};
  for (Layer& s : layers) ASSERT_TRUE(megakernel::PlanLayer(s));
  for (Layer& s : layers) s.mailbox.tile_values = 512, s.split_k_log2 = 3;
  for (int i = 1; i < 4; ++i) layers[i].rows_log2 = 3;
  layers[4].rows_log2 = 3;
  EXPECT_TRUE(megakernel::TwoMailboxBuffersSuffice(layers)) << "the layer before spans the rows";
  layers[4].rows_log2 = 4;
  EXPECT_FALSE(megakernel::TwoMailboxBuffersSuffice(layers)) << "no layer before spans 16 rows";
  layers[1].rows_log2 = 4;
  EXPECT_FALSE(megakernel::TwoMailboxBuffersSuffice(layers)) << "use n - 2 is of layer 2";
  layers[4].mailbox.tile_values = 256;
  EXPECT_TRUE(megakernel::TwoMailboxBuffersSuffice(layers)) << "buffers of its own";
}

TEST(MegakernelSchedule, WarpsSpecializeWhereTilesAreSmallAndKSlicesAreOneBlock) {
  const auto specialize = [](std::vector<Layer> layers) {
    for (Layer& s : layers) EXPECT_TRUE(megakernel::PlanLayer(s));
    return megakernel::CanSpecializeWarps(layers);
  };
  const Layer first = Convolution(16, 0, 256, false), small = Convolution(16, 256, 256, false);
  EXPECT_TRUE(specialize({first, small, Convolution(4, 2048, 512, true, 1024)}));
  EXPECT_FALSE(specialize({first, Convolution(16, 512, 512, false)})) << "1024 values";
  Layer two_blocks = Convolution(4, 1024, 1024, false);
  ASSERT_TRUE(megakernel::PlanLayer(two_blocks));
  EXPECT_TRUE(megakernel::CanSpecializeWarps({two_blocks}));
  two_blocks.k_slice = 2 * megakernel::kBlockK;
  EXPECT_FALSE(megakernel::CanSpecializeWarps({two_blocks}));
}

// In a CTA-local layer a CTA has all in channels and its group's out channels, as many weights as
// of a GEMM tile; there are no partial sums to send.
TEST(MegakernelSchedule, LayersAreCtaLocalWhereThatNeedsNoMoreWeights) {
  std::vector<Layer> layers = {
      Convolution(16, 0, 256, false),  Convolution(16, 256, 256, false),
      Convolution(8, 256, 256, false), Down(16, 256),
      Convolution(16, 256, 256, true), Convolution(8, 256, 256, false, 128),
      Convolution(8, 256, 512, false), Up(8, 256),
      Convolution(4, 512, 512, false)};
  for (Layer& s : layers) ASSERT_TRUE(megakernel::PlanLayer(s));
  std::vector<Layer> local = layers;
  megakernel::PlanCtaLocal(local);
  for (size_t i = 0; i < layers.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(local[i].cta_local, i >= 1 && i <= 3);
    if (!local[i].cta_local) {
      EXPECT_EQ(local[i].k_slice, layers[i].k_slice) << "the others stay as they are planned";
      EXPECT_EQ(local[i].mailbox.tile_values, layers[i].mailbox.tile_values);
      continue;
    }
    EXPECT_EQ(local[i].k_slice, 256);
    EXPECT_EQ(local[i].mailbox.tile_values, 0);
    EXPECT_EQ(megakernel::kLocalTileChannels * 256, megakernel::kTileChannels * layers[i].k_slice);
    for (int cta = 0; cta < megakernel::kCtas; ++cta) {
      const megakernel::OutputTile tile = megakernel::TileOfCta(cta);
      const megakernel::GemmTile gemm = megakernel::GemmTileOf(local[i], tile);
      EXPECT_TRUE(gemm.has_work);
      EXPECT_EQ(gemm.row0, tile.row_slot);
      EXPECT_EQ(gemm.group_block, tile.group);
      EXPECT_EQ(gemm.k_slice + gemm.phase + gemm.out, 0);
    }
  }
}

// A step that is taken twice applies itself to its own result, where one of the threads is late.
TEST(MegakernelSchedule, APairTakesEachOfItsRowsOnce) {
  for (int rows = 1; rows <= megakernel::kRowsPerBatch; ++rows)
    for (int row_slot = 0; row_slot < megakernel::kPairRows; ++row_slot)
      for (const int tiles : {0, 1, 2}) {
        SCOPED_TRACE(testing::Message() << rows << " rows, slot " << row_slot << ", " << tiles);
        std::set<int> needed, taken;
        const auto row_of = [&](int i) {
          return std::min(row_slot + i * megakernel::kPairRows, rows - 1);
        };
        for (int i = 0; i < tiles; ++i) needed.insert(row_of(i));
        const int sampled = megakernel::SampledRows(row_slot, tiles, rows);
        for (int i = 0; i < sampled; ++i)
          EXPECT_TRUE(taken.insert(row_of(i)).second) << "row " << row_of(i) << " twice";
        EXPECT_EQ(taken, needed);
      }
}

// A CTA has the first convolution's and the head's weights of its own channels alone, and
// accumulators in the format in which partial sums travel.
TEST(MegakernelSchedule, ManyActionsFit) {
  megakernel::Args args;
  args.row_batches = 2, args.warp_specialized = true;
  std::vector<Layer> layers = {Convolution(16, 256, 256, false), Down(8, 512),
                               Convolution(4, 2048, 512, true, 1024), Up(8, 256)};
  for (Layer& s : layers) ASSERT_TRUE(megakernel::PlanLayer(s));
  megakernel::PlanCtaLocal(layers);
  args.layer_count = 29;  // of three levels
  const auto bytes = [&](mjp::Format format, int actions) {
    args.common.rows = 32, args.common.length = 16, args.common.action_dim = actions;
    args.common.first.taps = 5, args.common.first.in_c = actions, args.common.first.out_c = 256;
    args.common.x_halo = 2 * actions;
    args.common.last_channels = 256;
    return megakernel::PlanSharedSpace(layers, args, format, mjp::kMaxSharedBytesSm90).bytes;
  };
  const size_t room = mjp::kMaxSharedBytesSm90;
  EXPECT_LE(bytes(mjp::Format::kFp16, 16), room);
  EXPECT_LE(bytes(mjp::Format::kBf16, 12), room);
  EXPECT_GT(bytes(mjp::Format::kBf16, 14), room) << "several launches, of 16 rows";
}

TEST(MegakernelSchedule, OtherShapesAreRefused) {
  Layer odd = Convolution(16, 256, 256, false);
  odd.shape.taps = 7;
  EXPECT_FALSE(megakernel::PlanLayer(odd));
  Layer steep = Down(16, 1024);
  EXPECT_FALSE(megakernel::PlanLayer(steep)) << "several K blocks of a stride of 2";
  Layer small = Convolution(16, 32, 32, false);
  EXPECT_FALSE(megakernel::PlanLayer(small));
  Layer large = Convolution(16, 1024, 1024, false);
  EXPECT_FALSE(megakernel::PlanLayer(large)) << "2048 values are more than a CTA's tile";
}

}  // namespace

#include "kernels/cpu/winograd/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/reference/conv_reference.h"
#include "tests/support/check_close.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp_test::CheckClose;
using mjp_test::GuardedFeatures;
using mjp_test::RandomFloats;

struct Case {
  std::string name;
  int batch, in, height, width, out;
  bool residual, relu;
};

const Case kCases[] = {
    {"even", 1, 16, 8, 10, 32, false, true},        {"odd", 2, 32, 7, 9, 48, true, true},
    {"many_tiles", 1, 16, 18, 30, 16, true, false}, {"one_cell", 3, 64, 1, 1, 16, false, false},
    {"one_row", 1, 48, 1, 12, 80, true, true},      {"deep", 1, 288, 6, 20, 64, true, true},
    {"wide", 1, 16, 5, 7, 272, false, true},
};

// of float32 sums of products below 1: the limit of Convolve, and twice as much for the additions;
// sums of more inputs are larger, and rounded more often
double LimitOf(const Case& c) { return 4e-5 * std::max(c.in / 80.0, 1.0); }

class WinogradTest : public testing::TestWithParam<Case> {
 protected:
  static mjp::cpu::Features MapsOf(const Case& c, int channels) {
    return {.batch = c.batch,
            .height = c.height,
            .width = c.width,
            .channels = channels,
            .pitch = channels,
            .halo_y = 1,
            .halo_x = 1};
  }
  // in the layout of the maps (batch, height, width, channels), NaN where nothing was written
  std::vector<float> Run(const Case& c, int tiles_at_once, int channels_at_once = 1 << 20) {
    const size_t cells = size_t{1} * c.batch * c.height * c.width;
    GuardedFeatures in(MapsOf(c, c.in)), out(MapsOf(c, c.out)), residual(MapsOf(c, c.out));
    in.Set(RandomFloats(cells * c.in, 1));
    residual.Set(RandomFloats(cells * c.out, 4));
    const std::vector<float> weight = RandomFloats(size_t{9} * c.in * c.out, 2);
    const std::vector<float> bias = RandomFloats(c.out, 3);
    const mjp::cpu::WinogradLayer layer =
        mjp::cpu::MakeWinograd(weight.data(), bias.data(), c.out, c.in);
    mjp::cpu::WinogradArgs args{.layer = &layer, .x = in.view, .y = out.view};
    if (c.residual) args.residual = residual.view;
    args.relu = c.relu;
    mjp::cpu::AlignedBuffer scratch(mjp::cpu::WinogradScratch(layer));
    const int tiles = args.TilesOfMap() * c.batch;
    for (int t = 0; t < tiles; t += tiles_at_once) {
      for (int out = 0; out < c.out; out += channels_at_once) {
        WinogradConvolve(
            args,
            {t, std::min(t + tiles_at_once, tiles), out, std::min(out + channels_at_once, c.out)},
            scratch.data());
      }
    }
    EXPECT_TRUE(out.Intact());
    return out.Get();
  }
};

TEST_P(WinogradTest, AgreesWithDouble) {
  const Case& c = GetParam();
  const mjp::reference::ConvShape shape{.batch = c.batch,
                                        .in = c.in,
                                        .height = c.height,
                                        .width = c.width,
                                        .out = c.out,
                                        .kernel_h = 3,
                                        .kernel_w = 3,
                                        .pad_h = 1,
                                        .pad_w = 1};
  const size_t cells = size_t{1} * c.batch * c.height * c.width;
  const std::vector<float> x = RandomFloats(cells * c.in, 1),
                           residual = RandomFloats(cells * c.out, 4);
  std::vector<double> expected =
      mjp::reference::Conv(shape, x.data(), RandomFloats(size_t{9} * c.in * c.out, 2).data(),
                           RandomFloats(c.out, 3).data());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (c.residual) expected[i] += residual[i];
    if (c.relu) expected[i] = std::max(expected[i], 0.0);
  }
  EXPECT_TRUE(CheckClose(Run(c, 1 << 20), expected, LimitOf(c)));
}

TEST_P(WinogradTest, HasTheSameBitsInPieces) {
  const std::vector<float> whole = Run(GetParam(), 1 << 20);
  for (const int tiles : {1, 7, 64}) EXPECT_EQ(Run(GetParam(), tiles), whole);
  EXPECT_EQ(Run(GetParam(), 1 << 20, mjp::cpu::kWinogradChannelsAtOnce), whole);
}

TEST_P(WinogradTest, ThreadsComputeEveryTileAndChannelOnce) {
  const Case& c = GetParam();
  const mjp::cpu::WinogradLayer layer{.in = c.in, .out = c.out};
  const mjp::cpu::WinogradArgs args{.layer = &layer, .y = MapsOf(c, c.out)};
  const int tiles = args.TilesOfMap() * c.batch;
  for (const int threads : {1, 2, 3, 16}) {
    std::vector<int> count(size_t{1} * tiles * c.out);
    for (int t = 0; t < threads; ++t) {
      const mjp::cpu::WinogradBlock block = BlockOfThread(args, c.batch, t, threads);
      EXPECT_EQ(block.channel_begin % mjp::cpu::kWinogradChannelsAtOnce, 0);
      for (int i = block.tile_begin; i < block.tile_end; ++i) {
        for (int o = block.channel_begin; o < block.channel_end; ++o) ++count[i * c.out + o];
      }
    }
    EXPECT_EQ(count, std::vector<int>(count.size(), 1)) << threads;
  }
  const mjp::cpu::WinogradBlock first = BlockOfThread(args, c.batch, 0, 2);
  EXPECT_EQ(first.channel_end < c.out, c.name == "wide");
}

INSTANTIATE_TEST_SUITE_P(All, WinogradTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace

// The walk through a U-Net, on expressions instead of activations.

#include "policy/unet/unet_walk.h"

#include <gtest/gtest.h>

#include <string>

#include "policy/unet/network_builder.h"

namespace {

mjp::UnetWeights UnetOf(const std::vector<int>& down_dims) {
  mjp::UnetPolicyConfig config;
  config.state_dim = config.action_dim = 2;
  config.unet.down_dims = down_dims;
  return mjp::OutlineUnet(config);
}

// A value and what its readers saw of it.
struct Value {
  std::string text;
  int reads = 0;
};

TEST(UnetWalk, GoesDownThroughTheMiddleAndUpWithEachLevelsSkip) {
  const mjp::UnetWeights unet = UnetOf({8, 16, 32});
  int blocks = 0, resamples = 0;
  const auto steps = mjp::MapUnet(
      unet, [&](const mjp::ResidualBlock1d&) { return blocks++; },
      [&](const mjp::Conv&, const mjp::UnetPlace& place) {
        ++resamples;
        return place.upsamples ? '^' : 'v';
      });
  EXPECT_EQ(blocks, 12);
  EXPECT_EQ(resamples, 4);
  const Value out = mjp::LowerUnet(
      steps, Value{"x"},
      [](int block, const mjp::UnetPlace& place, Value& x, Value* skip) {
        EXPECT_EQ(skip != nullptr, place.takes_skip);
        const std::string inputs = x.text + (skip ? "," + skip->text : "");
        return Value{"b" + std::to_string(block) + "(" + inputs + ")"};
      },
      [](char resample, const mjp::UnetPlace&, Value& x) { return Value{resample + x.text}; });
  const std::string skip0 = "b1(b0(x))", skip1 = "b3(b2(v" + skip0 + "))",
                    skip2 = "b5(b4(v" + skip1 + "))", middle = "b7(b6(" + skip2 + "))";
  // the first level has no way up, so its skip is left
  EXPECT_EQ(out.text, "^b11(b10(^b9(b8(" + middle + "," + skip2 + "))," + skip1 + "))");
}

TEST(UnetWalk, AValueThatIsReadTwiceIsOneObject) {
  const mjp::UnetWeights unet = UnetOf({8, 16});
  const mjp::UnetOrder order = mjp::OrderOf(unet);
  int second_reads = 0;
  const auto read = [&](Value& x) { second_reads += x.reads++ > 0; };
  mjp::LowerUnet(
      order, Value{},
      [&](const mjp::ResidualBlock1d*, const mjp::UnetPlace&, Value& x, Value* skip) {
        read(x);
        if (skip != nullptr) read(*skip);
        return Value{};
      },
      [&](const mjp::Conv*, const mjp::UnetPlace&, Value& x) {
        read(x);
        return Value{};
      });
  EXPECT_EQ(second_reads, 1) << "the middle's input is the last level's skip";
}

}  // namespace

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/cuda/encoder_kernel/plan.h"

// The encoder kernel's plan, which is made without a GPU: what each CTA has of a network.

namespace {

using mjp::encoder_kernel::Args;
using mjp::encoder_kernel::Block;
using mjp::encoder_kernel::Convolution;
using mjp::encoder_kernel::Encoder;
using mjp::encoder_kernel::Layer;
using mjp::encoder_kernel::Plan;

constexpr int kSharedBytes = 227 * 1024;

Convolution Conv(int size, int in_c, int out_c, int kernel, int stride, int group_channels) {
  Convolution c;
  c.shape.in_h = c.shape.in_w = size, c.shape.in_c = in_c, c.shape.out_c = out_c;
  c.shape.kernel_h = c.shape.kernel_w = kernel, c.shape.stride = stride;
  c.shape.pad_h = c.shape.pad_w = kernel / 2;
  c.shape.out_h = c.shape.out_w = (size - 1) / stride + 1;
  c.groups = out_c / group_channels;
  return c;
}

// Stages of two blocks.
Encoder Network(int size, int in_c, const std::vector<int>& channels,
                const std::vector<int>& strides, int group_channels = 16) {
  Encoder encoder;
  for (size_t stage = 0; stage < channels.size(); ++stage) {
    for (int b = 0; b < 2; ++b) {
      const int stride = b == 0 ? strides[stage] : 1, out_c = channels[stage];
      Block& block = encoder.blocks.emplace_back();
      if (stride != 1 || in_c != out_c)
        block.shortcut = Conv(size, in_c, out_c, 1, stride, group_channels);
      block.first = Conv(size, in_c, out_c, 3, stride, group_channels);
      size = block.first.shape.out_h;
      block.second = Conv(size, out_c, out_c, 3, 1, group_channels);
      in_c = out_c;
    }
  }
  return encoder;
}

Encoder ResNet18() { return Network(21, 64, {64, 128, 256, 512}, {1, 2, 2, 2}); }

// The encoder of assets/pusht_image, whose stem reads 2x2 pixels at once.
Encoder Shipped() {
  Encoder encoder = Network(48, 32, {32, 64, 64}, {2, 2, 2});
  encoder.stem = Conv(48, 16, 32, 3, 1, 8);
  return encoder;
}

TEST(EncoderKernelPlanTest, EachValueOfAMapIsOneCtas) {
  const auto args = Plan(ResNet18(), 16, kSharedBytes);
  ASSERT_TRUE(args);
  EXPECT_EQ(args->layer_count, 19);
  for (int i = 0; i < args->layer_count; ++i) {
    SCOPED_TRACE(i);
    const Layer& l = args->layers[i];
    EXPECT_EQ(l.parts * l.Tiles() * mjp::encoder_kernel::kTileChannels, l.out_c);
    EXPECT_LE(l.parts * l.slices, 16);
    EXPECT_GE(l.slices * l.rows, l.out_h);
    EXPECT_LT((l.slices - 1) * l.rows, l.out_h) << "the last slice has rows";
    EXPECT_GE(l.pairs * l.NSplit() * mjp::encoder_kernel::kTilePositions, l.rows * l.out_w);
    EXPECT_LE(l.rows * l.out_w * 2 * l.Tiles(),
              args->thread_vectors * mjp::encoder_kernel::kThreads);
  }
}

TEST(EncoderKernelPlanTest, InversesDivide) {
  const auto args = Plan(ResNet18(), 16, kSharedBytes);
  ASSERT_TRUE(args);
  const auto over = [](int x, uint32_t inverse) {
    return static_cast<int>(static_cast<uint32_t>(x) * inverse >>
                            mjp::encoder_kernel::kInverseBits);
  };
  for (int i = 0; i < args->layer_count; ++i) {
    const Layer& l = args->layers[i];
    for (int x = 0; x < 512; ++x) {
      ASSERT_EQ(over(x, l.width_inverse), x / l.out_w) << "layer " << i;
      ASSERT_EQ(over(x, l.step_inverse), x / (l.rows * l.stride)) << "layer " << i;
      ASSERT_EQ(over(x, l.channels_inverse), x / (l.in_c / 16)) << "layer " << i;
    }
  }
}

TEST(EncoderKernelPlanTest, TheResidualIsTheBlocksInputOrItsShortcut) {
  const auto args = Plan(ResNet18(), 16, kSharedBytes);
  ASSERT_TRUE(args);
  const Layer* l = args->layers;
  EXPECT_TRUE(l[0].reads_residual && !l[0].adds_residual && l[1].adds_residual);
  EXPECT_TRUE(l[4].is_shortcut && !l[4].relu && !l[5].reads_residual && l[6].adds_residual);
  EXPECT_TRUE(l[0].clears_border && !l[1].clears_border && l[6].clears_border);
}

TEST(EncoderKernelPlanTest, AStemIsALayerWithoutAResidual) {
  const auto args = Plan(Shipped(), 16, kSharedBytes);
  ASSERT_TRUE(args);
  EXPECT_EQ(args->layer_count, 16);
  EXPECT_EQ(args->thread_vectors, mjp::encoder_kernel::kMostVectors);
  const Layer& stem = args->layers[0];
  EXPECT_TRUE(stem.relu && !stem.reads_residual && !stem.adds_residual && !stem.is_shortcut);
  EXPECT_EQ(stem.in_c, 16);
  EXPECT_TRUE(args->layers[1].is_shortcut);
  EXPECT_FALSE(Plan(Shipped(), 8, kSharedBytes)) << "more vectors than threads of 8 CTAs have";
}

TEST(EncoderKernelPlanTest, WhatItDoesNotTakeHasNoPlan) {
  EXPECT_FALSE(Plan({}, 16, kSharedBytes));
  EXPECT_FALSE(Plan(ResNet18(), 16, 99 * 1024)) << "more shared memory than there is";
  EXPECT_FALSE(Plan(Network(21, 64, {64}, {1}, 4), 16, kSharedBytes)) << "norm groups of four";
  EXPECT_FALSE(Plan(Network(21, 64, {64}, {1}, 64), 16, kSharedBytes)) << "and of 64";
  EXPECT_FALSE(Plan(Network(21, 24, {24}, {1}, 8), 16, kSharedBytes)) << "24 channels";
  EXPECT_FALSE(Plan(Network(60, 64, {64}, {1}), 16, kSharedBytes)) << "too many positions";
  EXPECT_FALSE(
      Plan(Network(9, 64, {64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64}, std::vector<int>(11, 1)),
           16, kSharedBytes))
      << "more layers than its table has";
  Encoder encoder = ResNet18();
  const float bias = 0.0f;
  encoder.blocks[3].second.bias = &bias;
  EXPECT_FALSE(Plan(encoder, 16, kSharedBytes)) << "a bias";
  encoder = Network(20, 64, {64}, {1});
  for (Block& block : encoder.blocks)
    for (Convolution* c : {&block.first, &block.second}) {
      c->shape.in_h = c->shape.out_h = 600;
      c->shape.in_w = c->shape.out_w = 1;
    }
  EXPECT_FALSE(Plan(encoder, 16, kSharedBytes)) << "more rows than a layer can say";
  encoder = ResNet18();
  encoder.blocks[0].first.groups = 0;
  EXPECT_FALSE(Plan(encoder, 16, kSharedBytes)) << "no norm";
  encoder = Shipped();
  encoder.stem = Conv(48, 16, 32, 5, 1, 8);
  EXPECT_FALSE(Plan(encoder, 16, kSharedBytes)) << "a stem of another kernel";
}

}  // namespace

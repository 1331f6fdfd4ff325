#include "kernels/cpu/transformer/patch_embedding.h"

#include <gtest/gtest.h>

#include "kernels/reference/conv_reference.h"
#include "tests/support/check_close.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp_test::CheckClose;
using mjp_test::GuardedFeatures;
using mjp_test::RandomFloats;

TEST(PatchEmbeddingTest, AgreesWithDouble) {
  for (const int patch : {8, 14, 16}) {
    // a rest of three pixels belongs to no patch
    const mjp::reference::ConvShape s{.batch = 2,
                                      .in = 3,
                                      .height = 2 * patch,
                                      .width = 3 * patch + 3,
                                      .out = 40,
                                      .kernel_h = patch,
                                      .kernel_w = patch,
                                      .stride = patch};
    const std::vector<float> pixels =
        RandomFloats(size_t{1} * s.batch * s.in * s.height * s.width, 1);
    const std::vector<float> weight = RandomFloats(size_t{1} * s.out * s.in * patch * patch, 2);
    GuardedFeatures x(
        {.batch = 2, .height = s.height, .width = s.width, .channels = 3, .halo_x = 1});
    x.Set(pixels);
    const auto layer = mjp::cpu::MakePatchEmbedding(weight.data(), nullptr, s.out, 3, patch);
    GuardedFeatures tokens(
        {.batch = 2, .height = 2, .width = 3, .channels = s.out, .pitch = s.out + 4}, 2);
    for (int n = 0; n < 2; ++n) {
      EmbedPatches(layer, x.view, n, tokens.view.At(n, 0, 0), tokens.view.pitch, 0, s.out);
    }
    EXPECT_TRUE(CheckClose(tokens.Get(),
                           mjp::reference::Conv(s, pixels.data(), weight.data(), nullptr), 5e-5));
    EXPECT_TRUE(tokens.Intact());
  }
}

}  // namespace

// Single bits flipped in the activations of a decision on the CPU: which of them change an action,
// and who sees it. `policy_bit_flips_test` prints the shares that docs/NUMERICS.md has.

#include "tests/policy/bit_flips.h"

#include <cstdint>
#include <cstring>
#include <functional>

#include "kernels/cpu/conv.h"

namespace mjp_test {
namespace {

constexpr int kFlips = 200;

std::function<void(const mjp::cpu::Features&)>& AfterConvolution() {
  static std::function<void(const mjp::cpu::Features&)> call;
  return call;
}

void FlipBit(float& value, int bit) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits ^= uint32_t{1} << bit;
  std::memcpy(&value, &bits, sizeof(bits));
}

class BitFlipsTest : public BitFlips, public testing::WithParamInterface<int> {
 protected:
  void TearDown() override { AfterConvolution() = nullptr; }

  // A decision in which a bit of what convolution `n` has written is flipped, counted from 0.
  std::vector<float> DecideWithFlip(long n) {
    long seen = 0;
    AfterConvolution() = [&](const mjp::cpu::Features& y) {
      if (seen++ != n) return;
      float* const row = y.At(static_cast<int>(Draw(y.batch)), static_cast<int>(Draw(y.height)),
                              static_cast<int>(Draw(y.width)));
      FlipBit(row[Draw(y.channels)], static_cast<int>(Draw(32)));
    };
    return Decide();
  }
};

TEST_P(BitFlipsTest, InAnActivation) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.threads = 1;
  options.sampler = {mjp::SamplerKind::kDdim, GetParam(), 0, 0, 1};
  Make(options);
  long convolutions = 0;
  AfterConvolution() = [&](const auto&) { ++convolutions; };
  Decide();
  ASSERT_GT(convolutions, 30L * GetParam());
  FlipShares shares{6e-5};  // fp32
  for (int i = 0; i < kFlips; ++i) {
    Count([&] { return DecideWithFlip(static_cast<long>(Draw(convolutions))); }, shares);
    AfterConvolution() = nullptr;
    if (i % 10 != 0) continue;
    ASSERT_EQ(Decide(), expected_) << "the decision after flip " << i;
  }
  shares.Print("activations on the CPU, " + std::to_string(GetParam()) + " steps");
  EXPECT_GT(shares.small, 0);
  EXPECT_GT(shares.large, 0);
}

INSTANTIATE_TEST_SUITE_P(Steps, BitFlipsTest, testing::Values(10, 2));

}  // namespace
}  // namespace mjp_test

// The linker gives every call of Convolve to the second (tests/CMakeLists.txt).
#define CONVOLVE "_ZN3mjp3cpu8ConvolveERKNS0_9ConvLayerERKNS0_8FeaturesES6_RKNS0_5BlockE"
void RealConvolve(const mjp::cpu::ConvLayer& layer, const mjp::cpu::Features& x,
                  const mjp::cpu::Features& y,
                  const mjp::cpu::Block& block) asm("__real_" CONVOLVE);
void WrapConvolve(const mjp::cpu::ConvLayer& layer, const mjp::cpu::Features& x,
                  const mjp::cpu::Features& y,
                  const mjp::cpu::Block& block) asm("__wrap_" CONVOLVE);
void WrapConvolve(const mjp::cpu::ConvLayer& layer, const mjp::cpu::Features& x,
                  const mjp::cpu::Features& y, const mjp::cpu::Block& block) {
  RealConvolve(layer, x, y, block);
  if (mjp_test::AfterConvolution()) mjp_test::AfterConvolution()(y);
}

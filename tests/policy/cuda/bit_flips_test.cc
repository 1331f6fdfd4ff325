// Single bits flipped in the weights that a GPU holds: which of them change an action, and who sees
// it. The self-check at load sees each one; afterwards there is the check that actions are finite.
// `policy_cuda_bit_flips_test` prints the shares that docs/NUMERICS.md has.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/primitives/cuda_check.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/cuda/self_check.h"
#include "policy/policy.h"
#include "tests/support/gpu/device_buffer.h"
#include "tests/support/gpu/memory_watch.h"

namespace mjp_test {
namespace {

constexpr int kFlips = 1000, kChecks = 50;
constexpr double kLimit = 1e-2;  // fp16: docs/NUMERICS.md, x after each step

struct Bit {
  char* byte;
  int bit;
};

class BitFlipsTest : public testing::Test {
 protected:
  void SetUp() override {
    DEVICE_OR_SKIP();
    checkpoint_ = mjp::LoadCheckpoint(std::string(MJPOLICY_SOURCE_DIR) + "/assets/pusht_image");
    options_.backend = mjp::Backend::kCuda;
    options_.precision = mjp::Precision::kFp16;
    options_.sampler = {mjp::SamplerKind::kDdim, 10, 0, 0, 1};
    options_.self_check = false;
    policy_ = mjp::Policy::Create(checkpoint_, options_);
    for (size_t i = 0; i < size_t{2} * 96 * 96 * 3; ++i)
      frames_.push_back(static_cast<uint8_t>(i * 7 + i / 288 * 3));
    expected_ = Decide();
  }
  void TearDown() override { MemoryWatch::Get().BeforeLaunch(nullptr); }

  std::vector<float> Decide() const {
    const std::vector<float> state = {250, 250, 255, 245};
    const mjp::NoiseKey key{11, 0};
    mjp::PolicyInput input;
    input.count = 1;
    input.frames = frames_;
    input.state = state;
    input.keys = {&key, 1};
    mjp::PolicyOutput output;
    policy_->Infer(input, output);
    return output.actions;
  }

  // Memory that was to a good part copied from the host.
  static std::vector<DeviceBlock> Weights() {
    std::vector<DeviceBlock> blocks = MemoryWatch::Get().Blocks();
    std::erase_if(blocks,
                  [](const DeviceBlock& block) { return 4 * block.uploaded < block.bytes; });
    return blocks;
  }
  Bit Choose(const std::vector<DeviceBlock>& blocks) {
    size_t all = 0;
    for (const DeviceBlock& block : blocks) all += block.bytes;
    size_t at = std::uniform_int_distribution<size_t>(0, all - 1)(random_);
    const int bit = std::uniform_int_distribution<int>(0, 7)(random_);
    for (const DeviceBlock& block : blocks) {
      if (at < block.bytes) return {block.begin + at, bit};
      at -= block.bytes;
    }
    return {};
  }
  // In the order of `stream`, and done when this returns.
  static void Flip(const Bit& bit, cudaStream_t stream) {
    uint8_t value = 0;
    mjp::CheckCuda(cudaMemcpyAsync(&value, bit.byte, 1, cudaMemcpyDeviceToHost, stream), "flip");
    mjp::CheckCuda(cudaStreamSynchronize(stream), "flip");
    value ^= static_cast<uint8_t>(1 << bit.bit);
    mjp::CheckCuda(cudaMemcpyAsync(bit.byte, &value, 1, cudaMemcpyHostToDevice, stream), "flip");
    mjp::CheckCuda(cudaStreamSynchronize(stream), "flip");
  }

  struct Shares {
    int equal = 0, small = 0, large = 0, refused = 0;
    void Print(const char* what) const {
      std::printf(
          "    %s: %d flips: %d change no bit of the actions, %d less than %.0e of half the "
          "range, %d more, %d are refused\n",
          what, equal + small + large + refused, equal, small, kLimit, large, refused);
    }
  };
  void Count(Shares& shares) const {
    try {
      const std::vector<float> actions = Decide();
      const mjp::FeatureStats& stats = checkpoint_->stats.action;
      double worst = 0;
      for (size_t i = 0; i < actions.size(); ++i) {
        EXPECT_TRUE(std::isfinite(actions[i]));
        const size_t j = i % stats.first.size();
        const double half = (stats.second[j] - stats.first[j]) / 2.0;
        worst = std::max(worst, std::abs(double{actions[i]} - expected_[i]) / half);
      }
      ++(worst == 0 ? shares.equal : worst < kLimit ? shares.small : shares.large);
    } catch (const mjp::Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("finite"));
      ++shares.refused;
    }
  }

  std::shared_ptr<const mjp::Checkpoint> checkpoint_;
  mjp::PolicyOptions options_;
  std::unique_ptr<mjp::Policy> policy_;
  std::vector<uint8_t> frames_;
  std::vector<float> expected_;
  std::mt19937 random_{7};
};

TEST_F(BitFlipsTest, TheSelfCheckSeesEachInTheWeights) {
  const std::vector<DeviceBlock> weights = Weights();
  ASSERT_FALSE(weights.empty());
  for (int i = 0; i < kChecks; ++i) {
    const Bit bit = Choose(weights);
    MemoryWatch::Get().BeforeLaunch([&](long launch, cudaStream_t stream) {
      if (launch == 1) Flip(bit, stream);
    });
    EXPECT_FALSE(mjp::RunSelfCheck(checkpoint_, options_).weights_intact) << "flip " << i;
    MemoryWatch::Get().BeforeLaunch(nullptr);
    Flip(bit, cudaStreamLegacy);
  }
  EXPECT_TRUE(mjp::RunSelfCheck(checkpoint_, options_).Passed());
}

TEST_F(BitFlipsTest, InTheWeightsAfterLoad) {
  const std::vector<DeviceBlock> weights = Weights();
  ASSERT_FALSE(weights.empty());
  Shares shares;
  for (int i = 0; i < kFlips; ++i) {
    const Bit bit = Choose(weights);
    Flip(bit, cudaStreamLegacy);
    Count(shares);
    Flip(bit, cudaStreamLegacy);
  }
  EXPECT_EQ(Decide(), expected_);
  shares.Print("weights");
  EXPECT_GT(shares.refused + shares.large, 0);
}

}  // namespace
}  // namespace mjp_test

// Single bits flipped in what a GPU holds, weights and activations: which of them change an action,
// and who sees it. The self-check at load sees each in the weights; afterwards there is the check
// that actions are finite. `policy_cuda_bit_flips_test` prints the shares that docs/NUMERICS.md
// has.

#include "tests/policy/bit_flips.h"

#include <optional>

#include "kernels/cuda/primitives/cuda_check.h"
#include "policy/cuda/self_check.h"
#include "tests/support/gpu/device_buffer.h"
#include "tests/support/gpu/memory_watch.h"

namespace mjp_test {
namespace {

constexpr int kFlips = 1000, kChecks = 50;

struct Bit {
  char* byte;
  int bit;
};

bool IsWeights(const DeviceBlock& block) { return 4 * block.uploaded >= block.bytes; }

class GpuBitFlips : public BitFlips {
 protected:
  void SetUp() override { DEVICE_OR_SKIP(); }
  void TearDown() override { MemoryWatch::Get().BeforeLaunch(nullptr); }

  static mjp::PolicyOptions Options(mjp::Precision precision, int steps) {
    mjp::PolicyOptions options;
    options.backend = mjp::Backend::kCuda;
    options.precision = precision;
    options.sampler = {mjp::SamplerKind::kDdim, steps, 0, 0, 1};
    options.self_check = false;
    return options;
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
};

class BitFlipsTest : public GpuBitFlips {
 protected:
  void SetUp() override {
    DEVICE_OR_SKIP();
    Make(options_);
  }

  static std::vector<DeviceBlock> Weights() {
    std::vector<DeviceBlock> blocks = MemoryWatch::Get().Blocks();
    std::erase_if(blocks, [](const DeviceBlock& block) { return !IsWeights(block); });
    return blocks;
  }
  Bit Choose(const std::vector<DeviceBlock>& blocks) {
    size_t all = 0;
    for (const DeviceBlock& block : blocks) all += block.bytes;
    size_t at = Draw(all);
    const int bit = static_cast<int>(Draw(8));
    for (const DeviceBlock& block : blocks) {
      if (at < block.bytes) return {block.begin + at, bit};
      at -= block.bytes;
    }
    return {};
  }

  const mjp::PolicyOptions options_ = Options(mjp::Precision::kFp16, 10);
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
  FlipShares shares;
  for (int i = 0; i < kFlips; ++i) {
    const Bit bit = Choose(weights);
    Flip(bit, cudaStreamLegacy);
    Count([&] { return Decide(); }, shares);
    Flip(bit, cudaStreamLegacy);
  }
  EXPECT_EQ(Decide(), expected_);
  shares.Print("weights");
  EXPECT_GT(shares.refused + shares.large, 0);
}

// A form of the network's launches, and the steps of a decision.
struct Form {
  const char* name;
  mjp::Precision precision;
  int steps;
  double limit;  // of the self-check, which takes two steps
};

class ActivationFlipsTest : public GpuBitFlips, public testing::WithParamInterface<Form> {
 protected:
  static constexpr int kActivationFlips = 300;
  static constexpr size_t kLine = 16;  // bytes that are taken as written where one of them changed

  // Memory that launches write.
  static std::vector<DeviceBlock> Working() {
    std::vector<DeviceBlock> blocks = MemoryWatch::Get().Blocks();
    std::erase_if(blocks, IsWeights);
    return blocks;
  }
  using Contents = std::vector<std::vector<uint8_t>>;  // of blocks
  static Contents Read(const std::vector<DeviceBlock>& blocks, cudaStream_t stream) {
    mjp::CheckCuda(cudaStreamSynchronize(stream), "read");
    Contents contents;
    for (const DeviceBlock& block : blocks) {
      contents.emplace_back(block.bytes);
      mjp::CheckCuda(
          cudaMemcpy(contents.back().data(), block.begin, block.bytes, cudaMemcpyDeviceToHost),
          "read");
    }
    return contents;
  }
  // A bit of what differs; none where nothing does.
  std::optional<Bit> Choose(const std::vector<DeviceBlock>& blocks, const Contents& before,
                            const Contents& after) {
    std::vector<char*> lines;
    for (size_t i = 0; i < blocks.size(); ++i) {
      for (size_t at = 0; at + kLine <= blocks[i].bytes; at += kLine) {
        if (!std::equal(&before[i][at], &before[i][at] + kLine, &after[i][at]))
          lines.push_back(blocks[i].begin + at);
      }
    }
    if (lines.empty()) return std::nullopt;
    return Bit{lines[Draw(lines.size())] + Draw(kLine), static_cast<int>(Draw(8))};
  }

  // The decision launch by launch.
  std::vector<float> DecideInLaunches() const {
    mjp::PolicyTrace trace;
    return Decide(&trace);
  }
  long CountLaunches() const {
    long count = 0;
    MemoryWatch::Get().BeforeLaunch([&](long launch, cudaStream_t) { count = launch; });
    DecideInLaunches();
    MemoryWatch::Get().BeforeLaunch(nullptr);
    return count;
  }
  // A decision in which a bit of what launch `n` has written is flipped. Another observation went
  // before it, so that what is written differs from what was there. `flipped`: whether a bit was.
  std::vector<float> DecideWithFlip(long n, bool& flipped) {
    DecideOnAnother();
    const std::vector<DeviceBlock> blocks = Working();
    Contents before;
    MemoryWatch::Get().BeforeLaunch([&](long launch, cudaStream_t stream) {
      if (launch == n) before = Read(blocks, stream);
      if (launch != n + 1) return;
      const std::optional<Bit> bit = Choose(blocks, before, Read(blocks, stream));
      flipped = bit.has_value();
      if (bit) Flip(*bit, stream);
    });
    return DecideInLaunches();
  }
};

TEST_P(ActivationFlipsTest, DuringADecision) {
  Make(Options(GetParam().precision, GetParam().steps));
  expected_ = DecideInLaunches();
  const long launches = CountLaunches();
  ASSERT_GT(launches, GetParam().steps);
  FlipShares shares{GetParam().limit};
  for (int i = 0; i < kActivationFlips; ++i) {
    bool flipped = false;
    Count([&] { return DecideWithFlip(1 + static_cast<long>(Draw(launches - 1)), flipped); },
          shares);
    if (!flipped) --shares.equal;  // the launch wrote what was there
    MemoryWatch::Get().BeforeLaunch(nullptr);
    ASSERT_EQ(DecideInLaunches(), expected_) << "the decision after flip " << i;
  }
  shares.Print(std::string("activations, ") + GetParam().name + ", " + policy_->Description() +
               ", " + std::to_string(launches) + " launches");
  EXPECT_GT(shares.small + shares.large + shares.refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, ActivationFlipsTest,
                         testing::Values(Form{"Fp16Steps10", mjp::Precision::kFp16, 10, 1e-2},
                                         Form{"Fp16Steps2", mjp::Precision::kFp16, 2, 1e-2},
                                         Form{"Fp32Steps10", mjp::Precision::kFp32, 10, 6e-5},
                                         Form{"Fp32Steps2", mjp::Precision::kFp32, 2, 6e-5}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mjp_test

#include <gtest/gtest.h>

#include <string>

#include "policy/dit/clip_tower.h"
#include "policy/dit/trunk.h"
#include "tests/policy/dit/dit_formula.h"
#include "tests/policy/dit/dit_reference.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/check_close.h"
#include "tests/support/guarded_features.h"

// The networks of multi_task_dit against their definition in double precision.

namespace {

using mjp::cpu::ThreadPool;
using mjp_test::CheckClose;
using mjp_test::Matrix;
using mjp_test::RandomFloats;

mjp::DitWeights Weights(const mjp::DitConfig& config) {
  mjp::DitWeights weights = mjp::OutlineDit(config);
  mjp_test::DitFormula formula;
  EXPECT_GT(mjp::TakeDit({}, config, formula, weights), 1000);
  return weights;
}

Matrix Part(const std::vector<float>& values, size_t index, size_t size) {
  const auto begin = values.begin() + static_cast<ptrdiff_t>(index * size);
  return {begin, begin + static_cast<ptrdiff_t>(size)};
}

class TrunkTest : public testing::TestWithParam<bool> {
 protected:
  TrunkTest() : config_(mjp_test::SmallDitConfig(GetParam())), weights_(Weights(config_)) {}

  // The network for rows, each at a time and in an environment of its own.
  std::vector<float> Forward(const std::vector<float>& x, const std::vector<int>& time,
                             const std::vector<int>& environment, int threads) {
    ThreadPool pool(threads);
    const mjp::cpu::PackedTrunk packed = mjp::cpu::PackTrunk(config_, weights_);
    mjp::cpu::Trunk trunk(packed, config_, times_, static_cast<int>(time.size()), 2, pool);
    trunk.SetConditioning(cond_, 2);
    std::vector<float> out(x.size());
    trunk.Forward(x.data(), time.data(), environment.data(), static_cast<int>(time.size()),
                  out.data());
    return out;
  }

  mjp::DitConfig config_;
  mjp::DitWeights weights_;
  std::vector<double> times_ = {99, 0, 0.37};
  std::vector<float> cond_ = RandomFloats(size_t{2} * config_.CondDim(), 1);
  size_t size_ = size_t{1} * config_.horizon * config_.action_dim;
};

TEST_P(TrunkTest, AgreesWithDouble) {
  const std::vector<int> time = {0, 2, 1, 2}, environment = {1, 0, 0, 1};
  const std::vector<float> x = RandomFloats(4 * size_, 2);
  const std::vector<float> out = Forward(x, time, environment, 2);
  for (size_t r = 0; r < time.size(); ++r) {
    const Matrix expected = mjp_test::TrunkReference(
        weights_, config_, Part(x, r, size_), times_[time[r]],
        Part(cond_, environment[r], static_cast<size_t>(config_.CondDim())));
    EXPECT_TRUE(CheckClose(Part(out, r, size_), expected, 4e-6)) << "row " << r;
  }
}

TEST_P(TrunkTest, ARowDependsOnNothingElse) {
  const std::vector<int> time = {0, 2, 1, 2}, environment = {1, 0, 0, 1};
  const std::vector<float> x = RandomFloats(4 * size_, 2);
  const std::vector<float> out = Forward(x, time, environment, 1);
  EXPECT_EQ(Forward(x, time, environment, 3), out);
  for (size_t r = 0; r < time.size(); ++r) {
    const auto begin = x.begin() + static_cast<ptrdiff_t>(r * size_);
    const std::vector<float> alone =
        Forward({begin, begin + static_cast<ptrdiff_t>(size_)}, {time[r]}, {environment[r]}, 2);
    EXPECT_EQ(Part(alone, 0, size_), Part(out, r, size_)) << "row " << r;
  }
}

TEST_P(TrunkTest, NotANumberIsNotLost) {
  std::vector<float> x = RandomFloats(2 * size_, 2);
  x[0] = NAN;
  const std::vector<float> out = Forward(x, {0, 0}, {0, 0}, 2);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i < size_) << i;
}

INSTANTIATE_TEST_SUITE_P(Positions, TrunkTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "rotary" : "absolute"; });

TEST(VisionTowerTest, AgreesWithDouble) {
  const mjp::DitConfig config = mjp_test::SmallDitConfig(true);
  const mjp::DitWeights weights = Weights(config);
  const int size = config.clip.image, width = config.clip.vision.width, count = 3;
  mjp_test::GuardedFeatures x(
      {.batch = count, .height = size, .width = size, .channels = 3, .pitch = 3});
  const std::vector<float> pixels = RandomFloats(size_t{3} * count * size * size, 3);
  x.Set(pixels);
  const mjp::cpu::PackedVision packed = mjp::cpu::PackVision(weights.vision[0]);
  std::vector<float> first;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    mjp::cpu::VisionTower tower(packed, config.clip, count, pool);
    std::vector<float> features(size_t{1} * count * width);
    tower.Encode(x.view, count, features.data());
    for (int n = 0; n < count; ++n) {
      const Matrix expected = mjp_test::VisionReference(weights.vision[0], config.clip,
                                                        Part(pixels, n, size_t{3} * size * size));
      EXPECT_TRUE(CheckClose(Part(features, n, width), expected, 1e-5)) << "picture " << n;
    }
    if (!first.empty()) {
      EXPECT_EQ(features, first);
    }
    first = features;
  }
}

TEST(TextTowerTest, AgreesWithDouble) {
  const mjp::DitConfig config = mjp_test::SmallDitConfig(true);
  const mjp::DitWeights weights = Weights(config);
  const mjp::cpu::PackedText packed = mjp::cpu::PackText(weights.text);
  for (const std::vector<int>& ids : {std::vector<int>{6, 7}, std::vector<int>{6, 0, 3, 3, 5, 7}}) {
    ThreadPool pool(2);
    std::vector<float> pooled(config.clip.text.width);
    mjp::cpu::EncodeText(packed, config.clip, ids, pooled.data(), pool);
    EXPECT_TRUE(CheckClose(pooled, mjp_test::TextReference(weights.text, config.clip, ids), 1e-5));
  }
}

}  // namespace

#ifndef TESTS_POLICY_BIT_FLIPS_H_
#define TESTS_POLICY_BIT_FLIPS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/policy.h"

namespace mjp_test {

// What flips did, each to the actions of one decision, in units of half the action range.
struct FlipShares {
  static constexpr double kLarge = 1e-2;
  double limit = kLarge;  // of the self-check for the format: docs/NUMERICS.md
  int equal = 0, small = 0, large = 0, refused = 0;
  int seen = 0;  // beyond the limit, or refused

  // A decision that was off by so much.
  void Add(double difference) {
    ++(difference == 0 ? equal : difference < kLarge ? small : large);
    seen += difference >= limit;
  }
  void Print(const std::string& what) const {
    std::printf(
        "    %s: %d flips: %d change no bit of the actions, %d less than %.0e of half the range, "
        "%d more, %d are refused; a self-check that allows %.0e would see %d\n",
        what.c_str(), equal + small + large + refused, equal, small, kLarge, large, refused, limit,
        seen);
  }
};

// Decisions of the shipped policy into which a test flips single bits.
class BitFlips : public testing::Test {
 protected:
  void Make(const mjp::PolicyOptions& options) {
    policy_ = mjp::Policy::Create(checkpoint_, options);
    expected_ = Decide();
  }

  // The actions on one observation; with a trace, launch by launch instead of by a graph.
  std::vector<float> Decide(mjp::PolicyTrace* trace = nullptr) const {
    return DecideOn({7, 250, 255}, {11, 0}, trace);
  }
  void DecideOnAnother() const { DecideOn({5, 120, 200}, {12, 3}, nullptr); }

  // Counts what became of `decide`, a decision into which a bit was flipped.
  template <typename Decision>
  void Count(Decision decide, FlipShares& shares) const {
    try {
      const std::vector<float> actions = decide();
      const mjp::FeatureStats& stats = checkpoint_->stats.action;
      double worst = 0;
      for (size_t i = 0; i < actions.size(); ++i) {
        EXPECT_TRUE(std::isfinite(actions[i]));
        const size_t j = i % stats.first.size();
        const double half = (stats.second[j] - stats.first[j]) / 2.0;
        worst = std::max(worst, std::abs(double{actions[i]} - expected_[i]) / half);
      }
      shares.Add(worst);
    } catch (const mjp::Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("finite"));
      ++shares.refused, ++shares.seen;
    }
  }

  // A number below `count`.
  size_t Draw(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

  std::shared_ptr<const mjp::Checkpoint> checkpoint_ =
      mjp::LoadCheckpoint(std::string(MJPOLICY_SOURCE_DIR) + "/assets/pusht_image");
  std::unique_ptr<mjp::Policy> policy_;
  std::vector<float> expected_;
  std::mt19937 random_{7};

 private:
  struct Observation {
    int slope;       // of the pictures
    float from, to;  // of the state
  };
  std::vector<float> DecideOn(const Observation& seen, const mjp::NoiseKey& key,
                              mjp::PolicyTrace* trace) const {
    std::vector<uint8_t> frames;
    for (size_t i = 0; i < size_t{2} * 96 * 96 * 3; ++i)
      frames.push_back(static_cast<uint8_t>(i * seen.slope + i / 288 * 3));
    const std::vector<float> state = {seen.from, seen.from, seen.to, seen.to - 10};
    mjp::PolicyInput input;
    input.count = 1;
    input.frames = frames;
    input.state = state;
    input.keys = {&key, 1};
    mjp::PolicyOutput output;
    output.trace = trace;
    policy_->Infer(input, output);
    return output.actions;
  }
};

}  // namespace mjp_test

#endif  // TESTS_POLICY_BIT_FLIPS_H_

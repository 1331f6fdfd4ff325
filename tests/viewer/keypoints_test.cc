#include "viewer/diagnostics/keypoints.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/checkpoint/random_checkpoint.h"
#include "policy/unet/unet_model.h"

namespace mjp::app {
namespace {

constexpr int kSize = 96;

// Pictures of noise in which nothing is special.
std::vector<uint8_t> Frames(int count) {
  std::vector<uint8_t> frames(size_t{3} * kSize * kSize * count);
  uint32_t state = 7;
  for (uint8_t& byte : frames) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return frames;
}

class KeypointsTest : public testing::TestWithParam<const char*> {};

TEST_P(KeypointsTest, LieInWhatTheEncoderSees) {
  const auto checkpoint = mjp::NamedNetwork(GetParam());
  ASSERT_TRUE(KeypointFinder::Has(*checkpoint));
  KeypointFinder finder(checkpoint);
  const std::vector<float> points = finder.Find(Frames(2));
  ASSERT_EQ(points.size(), 2u * 2 * mjp::UnetOf(*checkpoint).config.encoder.pool_channels);
  const int crop = mjp::UnetOf(*checkpoint).config.encoder.crop_width;
  const float margin = crop > 0 ? (kSize - crop) / 2.0f : 0;
  for (const float place : points) {
    if (place == -1) continue;  // a silent map
    EXPECT_GE(place, margin);
    EXPECT_LE(place, kSize - 1 - margin);
  }
}

TEST_P(KeypointsTest, AreEachPicturesOwn) {
  KeypointFinder finder(mjp::NamedNetwork(GetParam()));
  const std::vector<uint8_t> frames = Frames(2);
  const std::vector<float> both = finder.Find(frames);
  const std::vector<float> second =
      finder.Find(std::vector<uint8_t>(frames.begin() + frames.size() / 2, frames.end()));
  ASSERT_EQ(2 * second.size(), both.size());
  EXPECT_TRUE(std::equal(second.begin(), second.end(), both.begin() + second.size()));
  EXPECT_FALSE(std::equal(second.begin(), second.end(), both.begin()));
}

INSTANTIATE_TEST_SUITE_P(Networks, KeypointsTest, testing::Values("compact", "lerobot-128"));

TEST(Keypoints, NoneWhereAnAverageForgetsPlaces) {
  EXPECT_FALSE(KeypointFinder::Has(*mjp::NamedNetwork("notebook")));
}

}  // namespace
}  // namespace mjp::app

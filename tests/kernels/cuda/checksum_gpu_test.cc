#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cuda/primitives/checksum.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp_test::DeviceBuffer;

std::vector<uint32_t> RandomWords(size_t count) {
  std::mt19937 random(3);
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  return words;
}

TEST(ChecksumTest, PartsAddUpToTheWhole) {
  const std::vector<uint32_t> words = RandomWords(1000);
  mjp::Checksum whole, parts;
  mjp::AddToChecksum(whole, 0, words.data(), 4000);
  mjp::AddToChecksum(parts, 300, words.data() + 300, 2800);
  mjp::AddToChecksum(parts, 0, words.data(), 1200);
  EXPECT_EQ(whole, parts);
}

TEST(ChecksumTest, EveryFlippedBitAndEverySwapChangesIt) {
  std::vector<uint32_t> words = RandomWords(64);
  mjp::Checksum before;
  mjp::AddToChecksum(before, 0, words.data(), 256);
  for (int bit = 0; bit < 64 * 32; ++bit) {
    words[bit / 32] ^= 1u << bit % 32;
    mjp::Checksum after;
    mjp::AddToChecksum(after, 0, words.data(), 256);
    EXPECT_NE(before, after) << bit;
    words[bit / 32] ^= 1u << bit % 32;
  }
  std::swap(words[3], words[40]);
  mjp::Checksum swapped;
  mjp::AddToChecksum(swapped, 0, words.data(), 256);
  EXPECT_NE(before, swapped);
}

TEST(ChecksumGpuTest, IsTheHostsOnTheDevice) {
  DEVICE_OR_SKIP();
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{3000001}}) {
    const std::vector<uint32_t> words = RandomWords(count);
    mjp::Checksum host;
    mjp::AddToChecksum(host, 0, words.data(), 4 * count);
    const DeviceBuffer device(4 * count);
    device.Upload(words.data());
    EXPECT_EQ(mjp::DeviceChecksum(device.as<uint32_t>(), 4 * count), host) << count;
  }
}

}  // namespace

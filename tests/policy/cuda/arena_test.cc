// What the arena clears and uploads is there for every stream when it returns, however late the
// default stream is.

#include "policy/cuda/arena.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/gpu/device_buffer.h"

namespace {

class DeviceArena : public testing::Test {
 protected:
  static constexpr int kCount = 64;

  void SetUp() override {
    DEVICE_OR_SKIP();
    mjp::CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    values_ = arena_.Take<int>(kCount);
  }
  void TearDown() override {
    if (stream_ != nullptr) mjp::CheckCuda(cudaStreamDestroy(stream_), "stream");
  }

  // What the default stream is given next happens later.
  static void HoldDefaultStream() {
    const auto wait = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
    mjp::CheckCuda(cudaLaunchHostFunc(cudaStreamLegacy, wait, nullptr), "host function");
  }
  void Seal() {
    arena_.Seal();
    values_ = arena_.Take<int>(kCount);
  }
  std::vector<int> Download() const {
    std::vector<int> host(kCount);
    mjp::CheckCuda(cudaMemcpyAsync(host.data(), values_, kCount * sizeof(int),
                                   cudaMemcpyDeviceToHost, stream_),
                   "copy");
    mjp::CheckCuda(cudaStreamSynchronize(stream_), "copy");
    return host;
  }

  mjp::DeviceArena arena_;
  int* values_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_F(DeviceArena, IsClearedBeforeSealReturns) {
  { const mjp_test::DeviceBuffer poison(kCount * sizeof(int)); }
  HoldDefaultStream();
  Seal();
  EXPECT_EQ(Download(), std::vector<int>(kCount, 0));
}

TEST_F(DeviceArena, HasWhatWasUploadedWhenUploadReturns) {
  Seal();
  const std::vector<int> host(kCount, 7);
  HoldDefaultStream();
  arena_.Upload(values_, host.data(), kCount * sizeof(int));
  EXPECT_EQ(Download(), host);
}

}  // namespace

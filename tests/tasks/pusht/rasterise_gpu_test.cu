#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda/primitives/cuda_check.h"
#include "tasks/pusht/pictures/rasterise_cuda.h"
#include "tests/support/random_scenes.h"

namespace mjp {
namespace {

constexpr int kGuard = 256;
constexpr uint8_t kGuardByte = 0xa5;

// Pictures with kGuard bytes before and after, drawn by the GPU.
std::vector<uint8_t> DrawGuarded(const std::vector<FlatScene>& scenes) {
  const size_t bytes = scenes.size() * kPictureBytes + 2 * kGuard;
  std::vector<uint8_t> host(bytes);
  FlatScene* device_scenes = nullptr;
  uint8_t* device_rgb = nullptr;
  CheckCuda(cudaMalloc(&device_scenes, scenes.size() * sizeof(FlatScene)), "cudaMalloc");
  CheckCuda(cudaMalloc(&device_rgb, bytes), "cudaMalloc");
  CheckCuda(cudaMemset(device_rgb, kGuardByte, bytes), "cudaMemset");
  CheckCuda(cudaMemcpy(device_scenes, scenes.data(), scenes.size() * sizeof(FlatScene),
                       cudaMemcpyHostToDevice),
            "cudaMemcpy");
  const CudaRasteriser rasteriser;
  rasteriser.Draw(device_scenes, static_cast<int>(scenes.size()), device_rgb + kGuard, nullptr);
  CheckCuda(cudaMemcpy(host.data(), device_rgb, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  cudaFree(device_scenes);
  cudaFree(device_rgb);
  return host;
}

class RasteriseGpu : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  }
};

// The pictures of `scenes`, and nothing beside them, are the CPU's.
void CheckBits(const std::vector<FlatScene>& scenes) {
  std::vector<uint8_t> expected(scenes.size() * kPictureBytes);
  RasteriseCpu(scenes.data(), static_cast<int>(scenes.size()), expected.data());
  const std::vector<uint8_t> drawn = DrawGuarded(scenes);
  int different = 0;
  for (size_t i = 0; i < scenes.size(); ++i) {
    const auto begin = expected.begin() + i * kPictureBytes;
    different +=
        !std::equal(begin, begin + kPictureBytes, drawn.begin() + kGuard + i * kPictureBytes);
  }
  EXPECT_EQ(different, 0) << "of " << scenes.size() << " pictures";
  const auto untouched = [](uint8_t v) { return v == kGuardByte; };
  EXPECT_TRUE(std::all_of(drawn.begin(), drawn.begin() + kGuard, untouched));
  EXPECT_TRUE(std::all_of(drawn.end() - kGuard, drawn.end(), untouched));
}

TEST_F(RasteriseGpu, GivesTheBitsOfTheCpu) { CheckBits(mjp_test::RandomScenes(4096, 5)); }

TEST_F(RasteriseGpu, FewPicturesToo) {
  const std::vector<FlatScene> scenes = mjp_test::RandomScenes(1024, 6);
  for (size_t i = 0; i < scenes.size(); i += 32)
    CheckBits({scenes.begin() + i, scenes.begin() + i + 32});
}

TEST_F(RasteriseGpu, LeavesWhatIsNotFiniteOutOfSight) {
  const float nan = std::nanf("");
  const std::vector<uint8_t> drawn = DrawGuarded({{nan, 100, nan, nan, 0}});
  const FlatScene empty = {-100, -100, -400, -400, 0};
  std::vector<uint8_t> expected(kPictureBytes);
  RasteriseCpu(&empty, 1, expected.data());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), drawn.begin() + kGuard));
}

}  // namespace
}  // namespace mjp

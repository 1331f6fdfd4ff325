#include <cuda_runtime_api.h>

#include <algorithm>

#include "apps/bench/harness.h"
#include "kernels/cuda_check.h"
#include "kernels/rasterise_cuda.h"
#include "policy/cuda/arena.h"

namespace pusht {
namespace {

// Times `launches` launches by events on the default stream; milliseconds of each.
std::vector<double> TimeLaunches(const dp::FlatScene* scenes, int count, uint8_t* rgb,
                                 int launches) {
  cudaEvent_t begin, end;
  dp::CheckCuda(cudaEventCreate(&begin), "cudaEventCreate");
  dp::CheckCuda(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> milliseconds;
  for (int i = 0; i < launches; ++i) {
    float elapsed = 0;
    dp::CheckCuda(cudaEventRecord(begin), "cudaEventRecord");
    dp::RasteriseCuda(scenes, count, rgb, nullptr);
    dp::CheckCuda(cudaEventRecord(end), "cudaEventRecord");
    dp::CheckCuda(cudaEventSynchronize(end), "cudaEventSynchronize");
    dp::CheckCuda(cudaEventElapsedTime(&elapsed, begin, end), "cudaEventElapsedTime");
    milliseconds.push_back(elapsed);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds;
}

}  // namespace

BenchRow BenchRasteriserOnGpu(const std::vector<dp::FlatScene>& scenes) {
  constexpr int kWarmUp = 20, kLaunches = 500;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    BenchRow row = FromTimes("pictures", "rasteriser, GPU", {});
    row.note = "skipped: no GPU";
    return row;
  }
  const int count = static_cast<int>(scenes.size());
  dp::DeviceArena arena;
  dp::FlatScene* device_scenes = nullptr;
  uint8_t* rgb = nullptr;
  for (int pass = 0; pass < 2; ++pass) {  // measured, then placed
    device_scenes = arena.Take<dp::FlatScene>(scenes.size());
    rgb = arena.Take<uint8_t>(scenes.size() * dp::kPictureBytes);
    if (pass == 0) arena.Seal();
  }
  arena.Upload(device_scenes, scenes.data(), scenes.size() * sizeof(dp::FlatScene));
  TimeLaunches(device_scenes, count, rgb, kWarmUp);
  BenchRow row =
      FromTimes("pictures", "rasteriser, GPU", TimeLaunches(device_scenes, count, rgb, kLaunches));
  row.items = count;
  row.unit = "frames";
  return row;
}

}  // namespace pusht

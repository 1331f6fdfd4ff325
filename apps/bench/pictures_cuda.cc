#include "apps/bench/device.h"
#include "apps/bench/gpu_timer.h"
#include "apps/bench/scenes.h"
#include "kernels/rasterise_cuda.h"
#include "policy/cuda/arena.h"

namespace pusht {

BenchRows BenchRasteriserCuda(const BenchOptions& options) {
  constexpr int kFrames = 1024, kCopies = 10;
  const std::vector<dp::FlatScene> scenes = StartScenes(kFrames);
  dp::DeviceArena arena;
  dp::FlatScene* device_scenes = nullptr;
  uint8_t* rgb = nullptr;
  for (int pass = 0; pass < 2; ++pass) {  // measured, then placed
    device_scenes = arena.Take<dp::FlatScene>(scenes.size());
    rgb = arena.Take<uint8_t>(scenes.size() * dp::kPictureBytes);
    if (pass == 0) arena.Seal();
  }
  arena.Upload(device_scenes, scenes.data(), scenes.size() * sizeof(dp::FlatScene));
  const dp::CudaRasteriser rasteriser;
  BenchRow row = TimeInLoop(
      "pictures", "rasteriser", options.seconds, kCopies,
      [&](cudaStream_t stream) { rasteriser.Draw(device_scenes, kFrames, rgb, stream); });
  row.items = kFrames;
  row.unit = "frames";
  return {row};
}

}  // namespace pusht

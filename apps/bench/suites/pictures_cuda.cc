#include "apps/bench/device.h"
#include "apps/bench/gpu_timer.h"
#include "apps/bench/scenes.h"
#include "policy/cuda/arena.h"
#include "tasks/pusht/pictures/rasterise_cuda.h"

namespace mjp::app {

BenchRows BenchRasteriserCuda(const BenchOptions& options) {
  constexpr int kFrames = 1024, kCopies = 10;
  const std::vector<mjp::FlatScene> scenes = StartScenes(kFrames);
  mjp::DeviceArena arena;
  mjp::FlatScene* device_scenes = nullptr;
  uint8_t* rgb = nullptr;
  for (int pass = 0; pass < 2; ++pass) {  // measured, then placed
    device_scenes = arena.Take<mjp::FlatScene>(scenes.size());
    rgb = arena.Take<uint8_t>(scenes.size() * mjp::kPictureBytes);
    if (pass == 0) arena.Seal();
  }
  arena.Upload(device_scenes, scenes.data(), scenes.size() * sizeof(mjp::FlatScene));
  const mjp::CudaRasteriser rasteriser;
  BenchRow row = TimeInLoop(
      "pictures", "rasteriser", options.seconds, kCopies,
      [&](cudaStream_t stream) { rasteriser.Draw(device_scenes, kFrames, rgb, stream); });
  row.items = kFrames;
  row.unit = "frames";
  return {row};
}

}  // namespace mjp::app

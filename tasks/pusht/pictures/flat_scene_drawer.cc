#include "tasks/pusht/pictures/flat_scene_drawer.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#ifdef MJPOLICY_HAVE_CUDA
#include "tasks/pusht/pictures/rasterise_cuda.h"
#endif

namespace mjp {
namespace {

#ifdef MJPOLICY_HAVE_CUDA
class GpuFlatSceneDrawer : public GpuSceneDrawer {
 public:
  void EnqueueDraw(const std::byte* scenes, int count, uint8_t* rgb,
                   CUstream_st* stream) const override {
    rasteriser_.Draw(reinterpret_cast<const FlatScene*>(scenes), count, rgb, stream);
  }

 private:
  CudaRasteriser rasteriser_;
};
#endif

class CpuFlatSceneDrawer : public SceneDrawer {
 public:
  size_t scene_bytes() const override { return sizeof(FlatScene); }
  int width() const override { return kPictureSize; }
  int height() const override { return kPictureSize; }

  void DrawOnCpu(std::span<const std::byte> scenes, std::span<uint8_t> rgb) const override {
    const size_t count = scenes.size() / sizeof(FlatScene);
    if (scenes.size() != count * sizeof(FlatScene) || rgb.size() != count * picture_bytes()) {
      throw BadInput("flat scenes: " + std::to_string(scenes.size()) + " bytes of scenes for " +
                     std::to_string(rgb.size()) + " bytes of pictures; expected " +
                     std::to_string(sizeof(FlatScene)) + " for every " +
                     std::to_string(picture_bytes()));
    }
    std::vector<FlatScene> flat(count);
    if (count > 0) std::memcpy(flat.data(), scenes.data(), scenes.size());
    RasteriseCpu(flat.data(), static_cast<int>(count), rgb.data());
  }

  std::unique_ptr<GpuSceneDrawer> MakeGpuDrawer() const override {
#ifdef MJPOLICY_HAVE_CUDA
    return std::make_unique<GpuFlatSceneDrawer>();
#else
    throw EnvironmentError("flat scenes: this build has no CUDA; give the policy frames");
#endif
  }
};

}  // namespace

const SceneDrawer& FlatSceneDrawer() {
  static const CpuFlatSceneDrawer drawer;
  return drawer;
}

}  // namespace mjp

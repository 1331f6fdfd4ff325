#include "apps/bench/harness.h"
#include "kernels/error.h"
#include "kernels/rasterise.h"
#include "plugin/mujoco_renderer.h"
#include "plugin/picture_source.h"
#include "task/raster_source.h"
#include "task/reset.h"
#include "task/scene.h"

namespace pusht {

std::vector<BenchRow> BenchPictures(const BenchOptions& options) {
  constexpr int kFrames = 1024;
  std::vector<dp::FlatScene> scenes;
  for (uint32_t seed = 0; seed < kFrames; ++seed) {
    scenes.push_back(ToFlatScene(BenchmarkStart(seed)));
  }
  std::vector<uint8_t> rgb(static_cast<size_t>(kFrames) * dp::kPictureBytes);
  std::vector<BenchRow> rows;
  rows.push_back(Measure("pictures", "rasteriser, one core", options.seconds, kFrames, "frames",
                         [&] { dp::RasteriseCpu(scenes.data(), kFrames, rgb.data()); }));

#ifdef PUSHT_HAVE_CUDA
  rows.push_back(BenchRasteriserOnGpu(scenes));
#endif

  const ModelPtr model = LoadModel(ModelPath("pusht.xml"));
  const DataPtr data = MakeData(model.get());
  const Scene scene(model.get());
  dp::PictureRequest request;
  request.cameras = {"top"};
  try {
    const auto source = dp::CreatePictureSource("mujoco", model.get(), request);
    uint32_t seed = 0;
    rows.push_back(
        Measure("pictures", "MuJoCo's renderer, faithful", options.seconds, 1, "frames", [&] {
          scene.ToQpos(BenchmarkStart(seed++ % kFrames), data->qpos);
          mj_kinematics(model.get(), data.get());
          source->Render(model.get(), data.get(), {rgb.data(), dp::kPictureBytes});
        }));
    rows.back().note = dp::MujocoRendererDescription();
  } catch (const dp::Error& error) {
    rows.push_back(FromTimes("pictures", "MuJoCo's renderer, faithful", {}));
    rows.back().note = std::string("skipped: ") + error.what();
  }
  return rows;
}

}  // namespace pusht

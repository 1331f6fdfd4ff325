#include "apps/bench/device.h"
#include "apps/bench/scenes.h"
#include "kernels/error.h"
#include "plugin/mujoco_renderer.h"
#include "plugin/picture_source.h"
#include "task/scene.h"

namespace pusht {

BenchRows BenchPictures(const BenchOptions& options) {
  constexpr int kFrames = 1024;
  const std::vector<dp::FlatScene> scenes = StartScenes(kFrames);
  std::vector<uint8_t> rgb(static_cast<size_t>(kFrames) * dp::kPictureBytes);
  BenchRows rows;
  rows.push_back(Measure("pictures", "rasteriser, one core", options.seconds, kFrames, "frames",
                         [&] { dp::RasteriseCpu(scenes.data(), kFrames, rgb.data()); }));
  rows = Joined(rows, OnGpu(options, "pictures", BenchRasteriserCuda));

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
    rows.push_back(Skipped("pictures", "MuJoCo's renderer, faithful", error.what()));
  }
  return rows;
}

}  // namespace pusht

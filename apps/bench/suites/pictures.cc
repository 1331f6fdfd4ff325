#include "apps/bench/device.h"
#include "apps/bench/scenes.h"
#include "base/error.h"
#include "plugin/pictures/look.h"
#include "plugin/pictures/mujoco_renderer.h"
#include "plugin/pictures/picture_source.h"
#include "tasks/pusht/physics/scene.h"

namespace mjp::app {

BenchRows BenchPictures(const BenchOptions& options) {
  constexpr int kFrames = 1024;
  const std::vector<mjp::FlatScene> scenes = StartScenes(kFrames);
  std::vector<uint8_t> rgb(static_cast<size_t>(kFrames) * mjp::kPictureBytes);
  BenchRows rows;
  rows.push_back(Measure("pictures", "rasteriser, one core", options.seconds, kFrames, "frames",
                         [&] { mjp::RasteriseCpu(scenes.data(), kFrames, rgb.data()); }));
  rows = Joined(rows, OnGpu(options, "pictures", BenchRasteriserCuda));

  const ModelPtr model = LoadModel(ModelPath("pusht.xml"));
  uint64_t look = 0;
  rows.push_back(Measure("pictures", "look of a model, hashed", options.seconds, 1, "frames",
                         [&] { look ^= mjp::HashLook(model.get()); }));
  const DataPtr data = MakeData(model.get());
  const Scene scene(model.get());
  mjp::PictureRequest request;
  request.cameras = {"top"};
  try {
    const auto source = mjp::CreatePictureSource("mujoco", model.get(), request);
    uint32_t seed = 0;
    rows.push_back(
        Measure("pictures", "MuJoCo's renderer, faithful", options.seconds, 1, "frames", [&] {
          scene.ToQpos(BenchmarkStart(seed++ % kFrames), data->qpos);
          mj_kinematics(model.get(), data.get());
          source->Render(model.get(), data.get(), {rgb.data(), mjp::kPictureBytes});
        }));
    rows.back().note = mjp::MujocoRendererDescription();
  } catch (const mjp::Error& error) {
    rows.push_back(Skipped("pictures", "MuJoCo's renderer, faithful", error.what()));
  }
  return rows;
}

}  // namespace mjp::app

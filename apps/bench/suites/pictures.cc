#include "apps/bench/device.h"
#include "apps/bench/scenes.h"
#include "base/error.h"
#include "plugin/pictures/look.h"
#include "plugin/pictures/mujoco_renderer.h"
#include "plugin/pictures/picture_source.h"
#include "tasks/pusht/physics/scene.h"

namespace mjp::app {

namespace {

// The way of a picture by MuJoCo's renderer, each of the next start.
class DrawnStarts {
 public:
  DrawnStarts(int width, int height, int cuda_device)
      : model_(LoadModel(ModelPath("pusht.xml"))),
        data_(MakeData(model_.get())),
        scene_(model_.get()),
        rgb_(size_t{3} * width * height),
        source_(mjp::CreatePictureSource("mujoco", model_.get(),
                                         {{"top"}, width, height, cuda_device})) {}

  void ToHost() {
    Next();
    source_->Render(model_.get(), data_.get(), rgb_);
  }
  // False: it is not left there.
  bool ToGpu() {
    Next();
    return source_->RenderOnGpu(model_.get(), data_.get()) != nullptr;
  }

 private:
  void Next() {
    scene_.ToQpos(BenchmarkStart(seed_++ % 1024), data_->qpos);
    mj_kinematics(model_.get(), data_.get());
  }

  ModelPtr model_;
  DataPtr data_;
  Scene scene_;
  std::vector<uint8_t> rgb_;
  std::unique_ptr<mjp::PictureSource> source_;
  uint32_t seed_ = 0;
};

BenchRows BenchMujoco(const BenchOptions& options, const std::string& name, int width, int height) {
  const bool gpu = options.policy.backend != mjp::Backend::kCpu && !DescribeMachine().gpu.empty();
  BenchRows rows;
  try {
    DrawnStarts starts(width, height, gpu ? 0 : -1);
    rows.push_back(
        Measure("pictures", name, options.seconds, 1, "frames", [&] { starts.ToHost(); }));
    rows.back().note = mjp::MujocoRendererDescription();
    if (!starts.ToGpu()) return rows;
    rows.push_back(Measure("pictures", name + ", left on the GPU", options.seconds, 1, "frames",
                           [&] { starts.ToGpu(); }));
    rows.back().note = rows.front().note;
  } catch (const mjp::Error& error) {
    rows.push_back(Skipped("pictures", name, error.what()));
  }
  return rows;
}

}  // namespace

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
  rows = Joined(rows, BenchMujoco(options, "MuJoCo's renderer, faithful", 96, 96));
  return Joined(rows, BenchMujoco(options, "MuJoCo's renderer, 640 x 480", 640, 480));
}

}  // namespace mjp::app

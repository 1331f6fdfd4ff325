#include "tasks/pusht/pictures/raster_source.h"

#include <mujoco/mujoco.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "kernels/cpu/picture_resize.h"
#include "plugin/pictures/picture_source.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"

namespace mjp::app {
namespace {

// A camera that sees anything else would be given a picture of another view.
void CheckCamera(const mjModel* model, const mjp::PictureRequest& request) {
  const std::string remedy = "; use renderer \"mujoco\"";
  if (request.cameras.size() != 1 || request.width != mjp::kPictureSize ||
      request.height != mjp::kPictureSize) {
    throw mjp::BadInput("renderer \"raster\" draws one picture of 96 x 96 pixels" + remedy);
  }
  const std::string& name = request.cameras[0];
  const int camera = mj_name2id(model, mjOBJ_CAMERA, name.c_str());
  if (camera < 0) throw mjp::BadInput("camera \"" + name + "\" is not in the model");
  const int* resolution = model->cam_resolution + 2 * camera;
  if (resolution[0] != mjp::kDrawingSize || resolution[1] != mjp::kDrawingSize ||
      model->cam_projection[camera] != mjPROJ_ORTHOGRAPHIC ||
      std::abs(model->cam_fovy[camera] - kWorldSize / kPixelsPerUnit) > 1e-9) {
    throw mjp::BadInput(
        "renderer \"raster\" draws the benchmark's view of the whole table, and "
        "camera \"" +
        name + "\" has another" + remedy);
  }
}

class RasterSource : public mjp::PictureSource {
 public:
  explicit RasterSource(const mjModel* model) : scene_(model) {}

  void Render(const mjModel*, mjData* data, std::span<uint8_t> rgb) override {
    if (rgb.size() != mjp::kPictureBytes) {
      throw mjp::BadInput("the buffer for a picture has " + std::to_string(rgb.size()) +
                          " bytes; expected " + std::to_string(mjp::kPictureBytes));
    }
    const mjp::FlatScene flat = ToFlatScene(scene_.Read(data));
    mjp::RasteriseCpu(&flat, 1, rgb.data());
  }

  bool ReadScene(const mjData* data, std::span<std::byte> scene) const override {
    const mjp::FlatScene flat = ToFlatScene(scene_.Read(data));
    if (scene.size() != sizeof(flat)) return false;
    std::memcpy(scene.data(), &flat, sizeof(flat));
    return true;
  }

 private:
  Scene scene_;
};

}  // namespace

mjp::FlatScene ToFlatScene(const State& s) {
  return {static_cast<float>(s.agent_x), static_cast<float>(s.agent_y),
          static_cast<float>(s.block_x), static_cast<float>(s.block_y),
          static_cast<float>(s.block_angle)};
}

void RegisterRasterSource() {
  mjp::RegisterPictureSource(
      "raster",
      [](const mjModel* model, const mjp::PictureRequest& request) {
        CheckCamera(model, request);
        return std::make_unique<RasterSource>(model);
      },
      &mjp::FlatSceneDrawer());
}

}  // namespace mjp::app

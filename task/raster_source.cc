#include "task/raster_source.h"

#include <mujoco/mujoco.h>

#include <cmath>
#include <memory>

#include "kernels/error.h"
#include "kernels/picture_resize.h"
#include "plugin/picture_source.h"
#include "task/scene.h"

namespace pusht {
namespace {

// A camera that sees anything else would be given a picture of another view.
void CheckCamera(const mjModel* model, const dp::PictureRequest& request) {
  const std::string remedy = "; use renderer \"mujoco\"";
  if (request.cameras.size() != 1 || request.width != dp::kPictureSize ||
      request.height != dp::kPictureSize) {
    throw dp::BadInput("renderer \"raster\" draws one picture of 96 x 96 pixels" + remedy);
  }
  const std::string& name = request.cameras[0];
  const int camera = mj_name2id(model, mjOBJ_CAMERA, name.c_str());
  if (camera < 0) throw dp::BadInput("camera \"" + name + "\" is not in the model");
  const int* resolution = model->cam_resolution + 2 * camera;
  if (resolution[0] != dp::kDrawingSize || resolution[1] != dp::kDrawingSize ||
      model->cam_projection[camera] != mjPROJ_ORTHOGRAPHIC ||
      std::abs(model->cam_fovy[camera] - kWorldSize / kPixelsPerUnit) > 1e-9) {
    throw dp::BadInput(
        "renderer \"raster\" draws the benchmark's view of the whole table, and "
        "camera \"" +
        name + "\" has another" + remedy);
  }
}

class RasterSource : public dp::PictureSource {
 public:
  explicit RasterSource(const mjModel* model) : scene_(model) {}

  void Render(const mjModel*, mjData* data, std::span<uint8_t> rgb) override {
    if (rgb.size() != dp::kPictureBytes) {
      throw dp::BadInput("the buffer for a picture has " + std::to_string(rgb.size()) +
                         " bytes; expected " + std::to_string(dp::kPictureBytes));
    }
    const dp::FlatScene flat = ToFlatScene(scene_.Read(data));
    dp::RasteriseCpu(&flat, 1, rgb.data());
  }

  std::optional<dp::FlatScene> ReadFlatScene(const mjData* data) const override {
    return ToFlatScene(scene_.Read(data));
  }

 private:
  Scene scene_;
};

}  // namespace

dp::FlatScene ToFlatScene(const State& s) {
  return {static_cast<float>(s.agent_x), static_cast<float>(s.agent_y),
          static_cast<float>(s.block_x), static_cast<float>(s.block_y),
          static_cast<float>(s.block_angle)};
}

void RegisterRasterSource() {
  dp::RegisterPictureSource("raster", [](const mjModel* model, const dp::PictureRequest& request) {
    CheckCamera(model, request);
    return std::make_unique<RasterSource>(model);
  });
}

}  // namespace pusht

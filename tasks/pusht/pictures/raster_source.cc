#include "tasks/pusht/pictures/raster_source.h"

#include <mujoco/mujoco.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "plugin/pictures/picture_source.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/pictures/drawn_scene.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"

namespace mjp::app {
namespace {

constexpr char kName[] = "raster";
constexpr char kRemedy[] = "; use renderer \"mujoco\"";

// The camera that a picture is asked of. Throws Error where it is not one of 96 x 96.
int CameraOf(const mjModel* model, const mjp::PictureRequest& request) {
  if (request.cameras.size() != 1 || request.width != mjp::kPictureSize ||
      request.height != mjp::kPictureSize) {
    throw mjp::BadInput("renderer \"raster\" draws one picture of 96 x 96 pixels" +
                        std::string(kRemedy));
  }
  const std::string& name = request.cameras[0];
  const int camera = mj_name2id(model, mjOBJ_CAMERA, name.c_str());
  if (camera < 0) throw mjp::BadInput("camera \"" + name + "\" is not in the model");
  return camera;
}

Scene SceneOf(const mjModel* model) {
  try {
    return Scene(model);
  } catch (const mjp::Error& error) {
    throw mjp::OtherTask("renderer \"raster\" draws Push-T alone: " + std::string(error.what()));
  }
}

class RasterSource : public mjp::PictureSource {
 public:
  RasterSource(const mjModel* model, const mjp::PictureRequest& request)
      : scene_(SceneOf(model)), camera_(CameraOf(model, request)) {
    Adopt(model);
  }

  void Adopt(const mjModel* model) override {
    const std::string difference = DifferenceFromDrawn(model, camera_);
    if (difference.empty()) return;
    throw mjp::BadInput(
        "renderer \"raster\" draws the benchmark's scene, and this model shows "
        "another: " +
        difference + kRemedy);
  }

  void Render(const mjModel*, mjData* data, std::span<uint8_t> rgb) override {
    if (rgb.size() != mjp::kPictureBytes) {
      throw mjp::BadInput("the buffer for a picture has " + std::to_string(rgb.size()) +
                          " bytes; expected " + std::to_string(mjp::kPictureBytes));
    }
    const mjp::FlatScene flat = ToFlatScene(scene_.Read(data));
    mjp::RasteriseCpu(&flat, 1, rgb.data());
  }

  std::vector<mjp::PictureLook> Looks() const override { return {RasterLook()}; }

  bool ReadScene(const mjData* data, std::span<std::byte> scene) const override {
    const mjp::FlatScene flat = ToFlatScene(scene_.Read(data));
    if (scene.size() != sizeof(flat)) return false;
    std::memcpy(scene.data(), &flat, sizeof(flat));
    return true;
  }

 private:
  Scene scene_;
  int camera_;
};

}  // namespace

mjp::FlatScene ToFlatScene(const State& s) {
  return {static_cast<float>(s.agent_x), static_cast<float>(s.agent_y),
          static_cast<float>(s.block_x), static_cast<float>(s.block_y),
          static_cast<float>(s.block_angle)};
}

mjp::PictureLook RasterLook() {
  mjp::PictureLook look;
  look.renderer = kName;
  look.height = look.width = mjp::kDrawingSize;
  return look;
}

void RegisterRasterSource() {
  mjp::RegisterPictureSource(
      kName,
      [](const mjModel* model, const mjp::PictureRequest& request) {
        return std::make_unique<RasterSource>(model, request);
      },
      &mjp::FlatSceneDrawer());
}

}  // namespace mjp::app

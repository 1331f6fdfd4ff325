#include "tasks/mjcf/pictures/requested_pictures.h"

#include "base/error.h"

namespace mjp::app {

PictureRequest PicturesFor(const TaskFile& file, const PolicyConfig& config, int cuda_device) {
  PictureRequest request;
  request.cameras = file.policy().config.cameras;
  request.width = config.cameras[0].width;
  request.height = config.cameras[0].height;
  request.cuda_device = cuda_device;
  for (const CameraFeature& camera : config.cameras) {
    if (camera.width == request.width && camera.height == request.height) continue;
    throw Unsupported("the checkpoint's pictures differ in size; one size is drawn");
  }
  return request;
}

std::vector<PictureLook> LooksOf(const TaskFile& file, const PolicyConfig& config) {
  if (config.cameras.empty()) return {};
  return LooksBy(file.policy().config.renderer, file.model(), PicturesFor(file, config, -1));
}

}  // namespace mjp::app

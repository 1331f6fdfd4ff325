#include "plugin/pictures/instance_pictures.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "plugin/guard.h"
#include "plugin/model/scope.h"
#include "plugin/notices.h"
#include "policy/checkpoint/network_model.h"

namespace mjp {

std::unique_ptr<PictureHistory> MakePictures(const mjModel* model, int instance,
                                             const Config& config, SharedPolicy& shared) {
  const PolicyConfig& policy = shared.config();
  if (config.cameras.size() != policy.cameras.size()) {
    std::string features;
    for (const CameraFeature& camera : policy.cameras) features += " " + camera.name;
    throw BadInput("attribute camera names " + std::to_string(config.cameras.size()) +
                   " cameras: the checkpoint has " + std::to_string(policy.cameras.size()) +
                   (features.empty() ? "" : ":" + features));
  }
  if (policy.cameras.empty()) return nullptr;
  for (const std::string& camera : config.cameras) CheckCamera(model, camera);
  PictureRequest request;
  request.cameras = config.cameras;
  request.width = policy.cameras[0].width;
  request.height = policy.cameras[0].height;
  request.cuda_device = shared.device_ordinal();
  for (const CameraFeature& camera : policy.cameras) {
    if (camera.width != request.width || camera.height != request.height) {
      throw Unsupported("the checkpoint's pictures differ in size; the plugin draws one size");
    }
  }
  const auto notice = [instance](const mjModel* current, const std::string& why) {
    if (!FirstNotice(current, instance, Notice::kRenderer)) return;
    Warn((InstanceName(current, instance) + " sees by MuJoCo's renderer: " + why).c_str());
  };
  return std::make_unique<PictureHistory>(model, config.renderer, request, policy.n_obs_steps,
                                          notice);
}

std::string CamerasAgainstNames(const std::vector<std::string>& cameras,
                                const std::vector<CameraFeature>& features) {
  const auto last_part = [](const CameraFeature& feature) {
    return feature.name.substr(feature.name.rfind('.') + 1);
  };
  for (size_t i = 0; i < cameras.size() && i < features.size(); ++i) {
    const auto same = std::ranges::find(features, cameras[i], last_part);
    if (same == features.end() || last_part(features[i]) == cameras[i]) continue;
    return "sees camera \"" + cameras[i] + "\" as " + features[i].name +
           ", and the checkpoint has " + same->name +
           " too; attribute camera names them in the order of its pictures";
  }
  return "";
}

void NoticeLook(const mjModel* model, int instance, const Checkpoint& checkpoint,
                const PictureHistory& pictures) {
  const std::string unlike = UnlikeTraining(checkpoint.config.cameras,
                                            checkpoint.network->trained_looks(), pictures.Looks());
  const std::string against =
      CamerasAgainstNames(Config::FromModel(model, instance).cameras, checkpoint.config.cameras);
  if (unlike.empty() && against.empty()) return;
  if (!FirstNotice(model, instance, Notice::kLook)) return;
  for (const std::string& what : {unlike, against}) {
    if (!what.empty()) Warn((InstanceName(model, instance) + " " + what).c_str());
  }
}

}  // namespace mjp

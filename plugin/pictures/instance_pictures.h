#ifndef PLUGIN_PICTURES_INSTANCE_PICTURES_H_
#define PLUGIN_PICTURES_INSTANCE_PICTURES_H_

#include <mujoco/mujoco.h>

#include <memory>
#include <string>
#include <vector>

#include "plugin/model/config.h"
#include "plugin/pictures/picture_history.h"
#include "plugin/policies/shared_policy.h"

namespace mjp {

// The pictures that the policy of `instance` sees, drawn where it runs. Null: it has no camera.
// Throws Error where the attribute `camera` does not fit the checkpoint, and as Policy::Create
// does.
std::unique_ptr<PictureHistory> MakePictures(const mjModel* model, int instance,
                                             const Config& config, SharedPolicy& shared);

// Where a camera has the name of another picture than the one that it is given as: "wrist" first
// and the checkpoint's "observation.images.front" before its "observation.images.wrist". Empty:
// none does. `cameras` as the attribute names them, `features` those of the checkpoint, both in
// order.
std::string CamerasAgainstNames(const std::vector<std::string>& cameras,
                                const std::vector<CameraFeature>& features);

// Says once where they are drawn otherwise than those of the policy's training, or seem to be in
// another order. To be called of an instance that is whole: around the cause of an error it would
// hide that.
void NoticeLook(const mjModel* model, int instance, const Checkpoint& checkpoint,
                const PictureHistory& pictures);

}  // namespace mjp

#endif  // PLUGIN_PICTURES_INSTANCE_PICTURES_H_

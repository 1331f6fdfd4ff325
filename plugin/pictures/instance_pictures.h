#ifndef PLUGIN_PICTURES_INSTANCE_PICTURES_H_
#define PLUGIN_PICTURES_INSTANCE_PICTURES_H_

#include <mujoco/mujoco.h>

#include <memory>

#include "plugin/model/config.h"
#include "plugin/pictures/picture_history.h"
#include "plugin/policies/shared_policy.h"

namespace mjp {

// The pictures that the policy of `instance` sees, drawn where it runs. Null: it has no camera.
// Throws Error where the attribute `camera` does not fit the checkpoint, and as Policy::Create
// does.
std::unique_ptr<PictureHistory> MakePictures(const mjModel* model, int instance,
                                             const Config& config, SharedPolicy& shared);

// Says once where they are drawn otherwise than those of the policy's training. To be called of an
// instance that is whole: around the cause of an error it would hide that.
void NoticeLook(const mjModel* model, int instance, const Checkpoint& checkpoint,
                const PictureHistory& pictures);

}  // namespace mjp

#endif  // PLUGIN_PICTURES_INSTANCE_PICTURES_H_

#ifndef PLUGIN_PICTURES_MUJOCO_RENDERER_H_
#define PLUGIN_PICTURES_MUJOCO_RENDERER_H_

#include <mujoco/mujoco.h>

#include <memory>
#include <string>
#include <vector>

#include "plugin/pictures/picture_source.h"

// MuJoCo's own renderer, offscreen through EGL, with or without a GPU or a display.

namespace mjp {

// Makes a source that draws with mjr_render on the process's one rendering thread; the caller's
// GL context is never touched. A camera whose `resolution` in the model is 512 x 512 is drawn at
// that size and reduced by the benchmark's 2-tap resize when 96 x 96 is asked for; any other is
// drawn at the size asked for. Throws Error(kBadInput) for a camera that is not in the model,
// Error(kEnvironment) with EGL's own error name where no GL context can be made.
std::unique_ptr<PictureSource> MakeMujocoPictureSource(const mjModel* model,
                                                       const PictureRequest& request);

// PictureSource::Looks of such a source. Throws Error(kBadInput) for a camera that is not in the
// model.
std::vector<PictureLook> MujocoLooks(const mjModel* model, const PictureRequest& request);

// The GL renderer in use ("llvmpipe (LLVM 15.0.6, 256 bits)"), or why there is none.
std::string MujocoRendererDescription();

}  // namespace mjp

#endif  // PLUGIN_PICTURES_MUJOCO_RENDERER_H_

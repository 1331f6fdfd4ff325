#ifndef PLUGIN_PICTURES_PICTURE_SOURCE_H_
#define PLUGIN_PICTURES_PICTURE_SOURCE_H_

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/pictures/gpu_picture.h"
#include "policy/pictures/picture_look.h"
#include "policy/scene_drawer.h"

// Where a policy's pictures come from: an interface and a table of the ways to draw, by name.
// The plugin brings "mujoco"; a task adds its own by RegisterPictureSource.

namespace mjp {

// What is to be drawn.
struct PictureRequest {
  std::vector<std::string> cameras;  // names of cameras of the model
  int width = 96, height = 96;       // pixels
  int cuda_device = -1;              // ordinal of the GPU the policy runs on; -1: none
};

// Draws what the cameras of one model see. One call at a time per object.
class PictureSource {
 public:
  virtual ~PictureSource() = default;

  // To be called before Render where the look (look.h) of the model is no longer that of the last
  // call, or of the making: brings up to date what the source keeps of it. Throws Error where the
  // source does not draw such a model; it may be asked again for another look.
  virtual void Adopt(const mjModel* /*model*/) {}

  // Draws `data` into rgb (cameras, height, width, 3), 8 bits, row 0 at the top. Kinematics must
  // be up to date. `model` is the one the source was made for or a copy of it, with the look that
  // was adopted. Throws Error.
  virtual void Render(const mjModel* model, mjData* data, std::span<uint8_t> rgb) = 0;

  // The same picture, bit for bit, left in the memory of the GPU that the request names. Null: this
  // source does not do so, and has not drawn.
  virtual std::shared_ptr<GpuPicture> RenderOnGpu(const mjModel* /*model*/, mjData* /*data*/) {
    return nullptr;
  }

  // How it draws each camera, the scene left aside; empty: it does not say.
  virtual std::vector<PictureLook> Looks() const { return {}; }

  // Where this source draws with a scene drawer: writes what `data` shows as the one scene that
  // draws the same picture, so that a policy may draw it on its own device. False: it does not.
  virtual bool ReadScene(const mjData* /*data*/, std::span<std::byte> /*scene*/) const {
    return false;
  }
};

// Thrown where a model is none of the renderer's task at all: "auto" then says nothing.
class OtherTask : public Error {
 public:
  explicit OtherTask(const std::string& text) : Error(ExitCode::kBadInput, text) {}
};

// Makes a source for `model`, which must outlive it. Throws Error where it cannot: a camera that
// is not there, a size that is not supported, a model that it does not draw, no EGL.
using PictureSourceFactory = std::function<std::unique_ptr<PictureSource>(
    const mjModel* model, const PictureRequest& request)>;

// Adds a way to draw; its sources' scenes are those of `drawer`, which lives for ever; null: they
// have none. The first registration of a name stands. Safe in static constructors.
void RegisterPictureSource(const std::string& name, PictureSourceFactory factory,
                           const SceneDrawer* drawer = nullptr);

// The drawer of the scenes that the source called `name` reads; "auto": of the first source that
// has one. Null: none.
const SceneDrawer* SceneDrawerOf(const std::string& name);

// Names of the ways to draw that this program was linked with, sorted.
std::vector<std::string> PictureSourceNames();

// Makes the source called `name`. Throws Error naming the known ones if there is none.
std::unique_ptr<PictureSource> CreatePictureSource(const std::string& name, const mjModel* model,
                                                   const PictureRequest& request);

// The names behind `renderer`, in the order in which they are tried: itself, or for "auto" those of
// tasks before "mujoco", which draws all.
std::vector<std::string> RenderersOf(const std::string& renderer);

// PictureSource::Looks of the first of RenderersOf(renderer) that draws `model`, without asking
// OpenGL for anything. Throws Error where the model lacks a camera.
std::vector<PictureLook> LooksBy(const std::string& renderer, const mjModel* model,
                                 const PictureRequest& request);

// True while the calling thread collects the scene of a policy's picture: `visualize` callbacks
// must then add nothing.
bool RenderingPolicyPicture();

// Marks the calling thread as collecting the scene of a policy's picture.
class PolicyPictureScope {
 public:
  PolicyPictureScope();
  ~PolicyPictureScope();
  PolicyPictureScope(const PolicyPictureScope&) = delete;
  PolicyPictureScope& operator=(const PolicyPictureScope&) = delete;
};

}  // namespace mjp

#endif  // PLUGIN_PICTURES_PICTURE_SOURCE_H_

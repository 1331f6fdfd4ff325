#ifndef PLUGIN_PICTURES_PICTURE_HISTORY_H_
#define PLUGIN_PICTURES_PICTURE_HISTORY_H_

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/pictures/picture_source.h"
#include "policy/pictures/page_locked.h"

namespace mjp {

// The pictures of the last observations of one simulation. Pictures are drawn when their
// observation is made and kept by all that they depend on: the pose, and the look of the model
// (look.h). One that is missing (after a state was restored, where one instance serves several
// simulations, or the model has been recoloured) is drawn again from its pose with the look that
// the model has now, so that a picture is a function of state and model alone.
class PictureHistory {
 public:
  // Why the renderer of a task does not draw this model, one sentence; MuJoCo's does.
  using Notice = std::function<void(const mjModel*, const std::string& why)>;

  // Throws Error where the renderer cannot draw these cameras. "auto": for each look the first
  // renderer that draws just that, those of a task before MuJoCo's own. `model` must outlive this.
  PictureHistory(const mjModel* model, const std::string& renderer, const PictureRequest& request,
                 int history, Notice notice);

  // How the model that was looked at last is drawn: PictureSource::Looks.
  std::vector<PictureLook> Looks() const { return source_->Looks(); }

  // Keeps scenes of `drawer` in place of pictures where the renderer has them, for a policy that
  // draws them on its own device: Scenes is then to be called, not Frames. Null: keeps pictures.
  void KeepScenes(const SceneDrawer* drawer) { drawer_ = drawer; }
  // Keeps pictures in the memory of the request's GPU where the renderer leaves them there.
  void KeepOnGpu() { on_gpu_ = true; }

  // Draws what `data` shows now, which is at `pose`. Throws Error where no renderer draws the model
  // as it looks now; so do Frames and Scenes.
  void Draw(const mjModel* model, mjData* data, std::span<const mjtNum> pose);
  // The pictures (poses, cameras, height, width, 3) of `poses`, oldest first; valid until the
  // next call.
  std::span<const uint8_t> Frames(const mjModel* model,
                                  std::span<const std::span<const mjtNum>> poses);
  // The picture (cameras, height, width, 3) of an observation at `pose` of a model with this look;
  // where it is not kept, it is drawn with the look of now. Valid until the next call.
  std::span<const uint8_t> Frame(const mjModel* model, std::span<const mjtNum> pose, uint64_t look);
  // The look of the model that was looked at last.
  uint64_t look() const { return look_; }
  // The same as scenes (poses, scene_bytes); empty if they are not kept.
  std::span<const std::byte> Scenes(const mjModel* model,
                                    std::span<const std::span<const mjtNum>> poses);
  // The same in the GPU's memory (poses); empty if one of them is not kept there.
  std::span<const std::shared_ptr<const GpuPicture>> GpuPictures(
      const mjModel* model, std::span<const std::span<const mjtNum>> poses);
  // The picture (cameras, height, width, 3) drawn last; empty if there is none.
  std::span<const uint8_t> Newest();
  // The same in the GPU's memory; null if it is not kept there.
  std::shared_ptr<const GpuPicture> NewestOnGpu() const;
  // Forgets all pictures: another episode begins.
  void Forget();

 private:
  struct Picture {
    std::vector<mjtNum> pose;  // empty: no picture yet
    uint64_t look = 0;
    std::vector<std::byte> scene;              // empty: none
    std::shared_ptr<const GpuPicture> on_gpu;  // null: it is not there
    std::vector<uint8_t> rgb;                  // on the host, where `drawn`
    bool drawn = false;
  };
  struct DataDeleter {
    void operator()(mjData* data) const { mj_deleteData(data); }
  };
  struct Renderer {
    std::string name;
    std::unique_ptr<PictureSource> source;  // made at need
  };

  void AdoptLook(const mjModel* model);
  PictureSource* Choose(const mjModel* model);
  Picture* Kept(std::span<const mjtNum> pose, uint64_t look);
  Picture& Add(const mjModel* model, mjData* data, std::span<const mjtNum> pose);
  Picture& Find(const mjModel* model, std::span<const mjtNum> pose);
  bool DrawOnGpu(const mjModel* model, mjData* data, std::span<const mjtNum> pose,
                 Picture& picture);
  std::span<const uint8_t> OnHost(Picture& picture);

  PictureRequest request_;
  Notice notice_;
  std::vector<Renderer> renderers_;      // to be tried in this order
  PictureSource* source_ = nullptr;      // the one that draws look_
  uint64_t look_ = 0;                    // of the model when it was last asked about
  std::vector<Picture> pictures_;        // a ring
  size_t next_ = 0;                      // the one drawn longest ago
  size_t newest_ = 0;                    // the one that Draw drew last
  const SceneDrawer* drawer_ = nullptr;  // of the scenes that are kept; null: pictures are
  bool on_gpu_ = false;
  std::vector<int> cameras_;  // of the model that this was made for
  PictureMemory frames_;
  std::vector<std::byte> scenes_;
  std::vector<std::shared_ptr<const GpuPicture>> gpu_pictures_;
  std::unique_ptr<mjData, DataDeleter> scratch_;  // what old poses are drawn from; made at need
};

}  // namespace mjp

#endif  // PLUGIN_PICTURES_PICTURE_HISTORY_H_

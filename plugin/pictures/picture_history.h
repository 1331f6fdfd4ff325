#ifndef PLUGIN_PICTURES_PICTURE_HISTORY_H_
#define PLUGIN_PICTURES_PICTURE_HISTORY_H_

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/pictures/picture_source.h"

namespace mjp {

// The pictures of the last observations of one simulation. Pictures are drawn when their
// observation is made and kept by pose; one that is missing (after a state was restored, or where
// one instance serves several simulations) is drawn again from its pose, which gives the same bits.
class PictureHistory {
 public:
  // Throws Error where the renderer cannot draw these cameras. "auto": the first renderer that
  // can, those of a task before MuJoCo's own. `model` must outlive this.
  PictureHistory(const mjModel* model, const std::string& renderer, const PictureRequest& request,
                 int history);

  // Keeps scenes of `drawer` in place of pictures where the renderer has them, for a policy that
  // draws them on its own device: Scenes is then to be called, not Frames. Null: keeps pictures.
  void KeepScenes(const SceneDrawer* drawer) { drawer_ = drawer; }

  // Draws what `data` shows now, which is at `pose`.
  void Draw(const mjModel* model, mjData* data, std::span<const mjtNum> pose);
  // The pictures (poses, cameras, height, width, 3) of `poses`, oldest first; valid until the
  // next call.
  std::span<const uint8_t> Frames(const mjModel* model,
                                  std::span<const std::span<const mjtNum>> poses);
  // The same as scenes (poses, scene_bytes); empty if they are not kept.
  std::span<const std::byte> Scenes(const mjModel* model,
                                    std::span<const std::span<const mjtNum>> poses);
  // The picture (cameras, height, width, 3) drawn last; empty if there is none.
  std::span<const uint8_t> Newest();

 private:
  struct Picture {
    std::vector<mjtNum> pose;      // empty: no picture yet
    std::vector<std::byte> scene;  // empty: none
    std::vector<uint8_t> rgb;      // as drawn, unless there is a scene
  };
  struct DataDeleter {
    void operator()(mjData* data) const { mj_deleteData(data); }
  };

  Picture& Add(const mjModel* model, mjData* data, std::span<const mjtNum> pose);
  Picture& Find(const mjModel* model, std::span<const mjtNum> pose);

  std::unique_ptr<PictureSource> source_;
  std::vector<Picture> pictures_;        // a ring
  size_t next_ = 0;                      // the one drawn longest ago
  size_t newest_ = 0;                    // the one that Draw drew last
  bool newest_drawn_ = false;            // though its scene alone was kept
  const SceneDrawer* drawer_ = nullptr;  // of the scenes that are kept; null: pictures are
  std::vector<uint8_t> frames_;
  std::vector<std::byte> scenes_;
  std::unique_ptr<mjData, DataDeleter> scratch_;  // what old poses are drawn from; made at need
};

}  // namespace mjp

#endif  // PLUGIN_PICTURES_PICTURE_HISTORY_H_

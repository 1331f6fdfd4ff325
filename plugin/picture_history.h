#ifndef PLUGIN_PICTURE_HISTORY_H_
#define PLUGIN_PICTURE_HISTORY_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/picture_source.h"

namespace dp {

// The pictures of the last observations of one simulation. Pictures are drawn when their
// observation is made and kept by pose; one that is missing (after a state was restored, or where
// one instance serves several simulations) is drawn again from its pose, which gives the same bits.
class PictureHistory {
 public:
  // Throws Error where the renderer cannot draw these cameras. "auto": the first renderer that
  // can, those of a task before MuJoCo's own. `model` must outlive this.
  PictureHistory(const mjModel* model, const std::string& renderer, const PictureRequest& request,
                 int history);

  // Draws what `data` shows now, which is at `pose`.
  void Draw(const mjModel* model, mjData* data, std::span<const mjtNum> pose);
  // The pictures (poses, cameras, height, width, 3) of `poses`, oldest first; valid until the
  // next call.
  std::span<const uint8_t> Frames(const mjModel* model,
                                  std::span<const std::span<const mjtNum>> poses);

 private:
  struct Picture {
    std::vector<mjtNum> pose;  // empty: no picture yet
    std::vector<uint8_t> rgb;
  };
  struct DataDeleter {
    void operator()(mjData* data) const { mj_deleteData(data); }
  };

  Picture& Oldest();
  const Picture& Find(const mjModel* model, std::span<const mjtNum> pose);

  std::unique_ptr<PictureSource> source_;
  std::vector<Picture> pictures_;  // a ring
  size_t next_ = 0;                // the one drawn longest ago
  std::vector<uint8_t> frames_;
  std::unique_ptr<mjData, DataDeleter> scratch_;  // what old poses are drawn from; made at need
};

}  // namespace dp

#endif  // PLUGIN_PICTURE_HISTORY_H_

#include "plugin/pictures/picture_history.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "plugin/pictures/pose.h"

namespace mjp {
namespace {

std::unique_ptr<PictureSource> MakeSource(const std::string& renderer, const mjModel* model,
                                          const PictureRequest& request) {
  if (renderer != "auto") return CreatePictureSource(renderer, model, request);
  for (const std::string& name : PictureSourceNames()) {
    if (name == "mujoco") continue;
    try {
      return CreatePictureSource(name, model, request);
    } catch (const Error&) {
      // this one does not draw such a scene; MuJoCo's renderer draws all, or says why not
    }
  }
  return CreatePictureSource("mujoco", model, request);
}

}  // namespace

PictureHistory::PictureHistory(const mjModel* model, const std::string& renderer,
                               const PictureRequest& request, int history)
    : source_(MakeSource(renderer, model, request)), pictures_(history) {
  const size_t bytes = request.cameras.size() * request.width * request.height * 3;
  for (Picture& picture : pictures_) picture.rgb.resize(bytes);
  frames_.resize(bytes * history);
}

PictureHistory::Picture& PictureHistory::Add(const mjModel* model, mjData* data,
                                             std::span<const mjtNum> pose) {
  Picture& picture = pictures_[std::exchange(next_, (next_ + 1) % pictures_.size())];
  picture.pose.clear();  // no picture, should drawing fail
  picture.scene.resize(drawer_ ? drawer_->scene_bytes() : 0);
  if (!drawer_ || !source_->ReadScene(data, picture.scene)) {
    picture.scene.clear();
    source_->Render(model, data, picture.rgb);
  }
  picture.pose.assign(pose.begin(), pose.end());
  return picture;
}

void PictureHistory::Draw(const mjModel* model, mjData* data, std::span<const mjtNum> pose) {
  newest_ = next_;
  newest_drawn_ = false;
  Add(model, data, pose);
}

PictureHistory::Picture& PictureHistory::Find(const mjModel* model, std::span<const mjtNum> pose) {
  const auto found = std::ranges::find_if(
      pictures_, [&](const Picture& picture) { return std::ranges::equal(picture.pose, pose); });
  if (found != pictures_.end()) return *found;
  if (!scratch_) scratch_.reset(mj_makeData(model));
  if (!scratch_) throw EnvironmentError("no memory to draw an earlier picture again");
  ApplyPose(model, pose, scratch_.get());
  return Add(model, scratch_.get(), pose);
}

std::span<const uint8_t> PictureHistory::Frames(const mjModel* model,
                                                std::span<const std::span<const mjtNum>> poses) {
  auto out = frames_.begin();
  for (const std::span<const mjtNum> pose : poses) {
    out = std::ranges::copy(Find(model, pose).rgb, out).out;
  }
  return frames_;
}

std::span<const std::byte> PictureHistory::Scenes(const mjModel* model,
                                                  std::span<const std::span<const mjtNum>> poses) {
  scenes_.clear();
  for (const std::span<const mjtNum> pose : poses) {
    const Picture& picture = Find(model, pose);
    if (picture.scene.empty()) return {};
    scenes_.insert(scenes_.end(), picture.scene.begin(), picture.scene.end());
  }
  return scenes_;
}

std::span<const uint8_t> PictureHistory::Newest() {
  Picture& picture = pictures_[newest_];
  if (picture.pose.empty()) return {};
  if (!picture.scene.empty() && !newest_drawn_) drawer_->DrawOnCpu(picture.scene, picture.rgb);
  newest_drawn_ = true;
  return picture.rgb;
}

}  // namespace mjp

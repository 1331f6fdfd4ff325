#include "plugin/pictures/picture_history.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "plugin/pictures/look.h"
#include "plugin/pictures/pose.h"

namespace mjp {

PictureHistory::PictureHistory(const mjModel* model, const std::string& renderer,
                               const PictureRequest& request, int history, Notice notice)
    : request_(request), notice_(std::move(notice)), pictures_(history) {
  for (const std::string& name : RenderersOf(renderer)) renderers_.push_back({name, nullptr});
  AdoptLook(model);
  const size_t bytes = request.cameras.size() * request.width * request.height * 3;
  for (Picture& picture : pictures_) picture.rgb.resize(bytes);
  frames_.resize(bytes * history);
}

// Chooses who draws the model as it looks now.
void PictureHistory::AdoptLook(const mjModel* model) {
  const uint64_t look = HashLook(model);
  if (source_ && look == look_) return;
  source_ = nullptr;  // none, should no renderer draw it
  source_ = Choose(model);
  look_ = look;
}

PictureSource* PictureHistory::Choose(const mjModel* model) {
  std::string why;
  for (Renderer& each : renderers_) {
    try {
      if (each.source) {
        each.source->Adopt(model);
      } else {
        each.source = CreatePictureSource(each.name, model, request_);
      }
      if (!why.empty()) notice_(model, why);
      return each.source.get();
    } catch (const OtherTask&) {
      if (&each == &renderers_.back()) throw;
    } catch (const Error& error) {
      if (&each == &renderers_.back()) throw;
      if (why.empty()) why = error.what();
    }
  }
  return nullptr;
}

// The picture of `pose` with the look of now; null: there is none.
PictureHistory::Picture* PictureHistory::Kept(std::span<const mjtNum> pose) {
  const auto found = std::ranges::find_if(pictures_, [&](const Picture& picture) {
    return picture.look == look_ && std::ranges::equal(picture.pose, pose);
  });
  return found == pictures_.end() ? nullptr : &*found;
}

// Takes the place of the one that was kept, or of the oldest.
PictureHistory::Picture& PictureHistory::Add(const mjModel* model, mjData* data,
                                             std::span<const mjtNum> pose) {
  Picture* kept = Kept(pose);
  Picture& picture = kept ? *kept : pictures_[next_];
  if (&picture == &pictures_[next_]) next_ = (next_ + 1) % pictures_.size();
  picture.pose.clear();  // no picture, should drawing fail
  picture.scene.resize(drawer_ ? drawer_->scene_bytes() : 0);
  if (!drawer_ || !source_->ReadScene(data, picture.scene)) {
    picture.scene.clear();
    source_->Render(model, data, picture.rgb);
  }
  picture.pose.assign(pose.begin(), pose.end());
  picture.look = look_;
  return picture;
}

void PictureHistory::Draw(const mjModel* model, mjData* data, std::span<const mjtNum> pose) {
  newest_drawn_ = false;
  AdoptLook(model);
  newest_ = &Add(model, data, pose) - pictures_.data();
}

PictureHistory::Picture& PictureHistory::Find(const mjModel* model, std::span<const mjtNum> pose) {
  if (Picture* kept = Kept(pose)) return *kept;
  if (!scratch_) scratch_.reset(mj_makeData(model));
  if (!scratch_) throw EnvironmentError("no memory to draw an earlier picture again");
  ApplyPose(model, pose, scratch_.get());
  return Add(model, scratch_.get(), pose);
}

void PictureHistory::Forget() {
  for (Picture& picture : pictures_) picture.pose.clear();
}

std::span<const uint8_t> PictureHistory::Frames(const mjModel* model,
                                                std::span<const std::span<const mjtNum>> poses) {
  AdoptLook(model);
  auto out = frames_.begin();
  for (const std::span<const mjtNum> pose : poses) {
    out = std::ranges::copy(Find(model, pose).rgb, out).out;
  }
  return frames_;
}

std::span<const std::byte> PictureHistory::Scenes(const mjModel* model,
                                                  std::span<const std::span<const mjtNum>> poses) {
  AdoptLook(model);
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

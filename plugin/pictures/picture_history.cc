#include "plugin/pictures/picture_history.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "plugin/model/outline.h"
#include "plugin/pictures/look.h"
#include "plugin/pictures/pose.h"

namespace mjp {

PictureHistory::PictureHistory(const mjModel* model, const std::string& renderer,
                               const PictureRequest& request, int history, Notice notice)
    : request_(request), notice_(std::move(notice)), pictures_(history) {
  for (const std::string& name : RenderersOf(renderer)) renderers_.push_back({name, nullptr});
  AdoptLook(model);
  for (const std::string& camera : request_.cameras)
    cameras_.push_back(mj_name2id(model, mjOBJ_CAMERA, camera.c_str()));
  const size_t bytes = request.cameras.size() * request.width * request.height * 3;
  for (Picture& picture : pictures_) picture.rgb.resize(bytes);
  frames_ = PictureMemory(bytes * history, request.cuda_device >= 0);
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

// The picture of `pose` with this look; null: there is none.
PictureHistory::Picture* PictureHistory::Kept(std::span<const mjtNum> pose, uint64_t look) {
  const auto found = std::ranges::find_if(pictures_, [&](const Picture& picture) {
    return picture.look == look && std::ranges::equal(picture.pose, pose);
  });
  return found == pictures_.end() ? nullptr : &*found;
}

// Takes the place of the one that was kept, or of the oldest.
PictureHistory::Picture& PictureHistory::Add(const mjModel* model, mjData* data,
                                             std::span<const mjtNum> pose) {
  Picture* kept = Kept(pose, look_);
  Picture& picture = kept ? *kept : pictures_[next_];
  if (&picture == &pictures_[next_]) next_ = (next_ + 1) % pictures_.size();
  picture.pose.clear();  // no picture, should drawing fail
  picture.drawn = false;
  picture.on_gpu = nullptr;
  picture.scene.resize(drawer_ ? drawer_->scene_bytes() : 0);
  if (!drawer_ || !source_->ReadScene(data, picture.scene)) {
    picture.scene.clear();
    if (!on_gpu_ || !DrawOnGpu(model, data, pose, picture)) {
      source_->Render(model, data, picture.rgb);
      picture.drawn = true;
    }
  }
  picture.pose.assign(pose.begin(), pose.end());
  picture.look = look_;
  return picture;
}

// False: the renderer does not do so.
bool PictureHistory::DrawOnGpu(const mjModel* model, mjData* data, std::span<const mjtNum> pose,
                               Picture& picture) {
  const std::shared_ptr<GpuPicture> drawn = source_->RenderOnGpu(model, data);
  if (!drawn) return false;
  const auto add = [&](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    drawn->shows.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  add(std::ranges::find(renderers_, source_, [](const Renderer& r) {
        return r.source.get();
      })->name);
  // the camera numbers, since models that look alike may name them otherwise
  const uint64_t shape[] = {look_, cameras_.size(), static_cast<uint64_t>(request_.width),
                            static_cast<uint64_t>(request_.height)};
  add(shape);
  add(cameras_);
  add(pose);
  picture.on_gpu = drawn;
  return true;
}

std::span<const uint8_t> PictureHistory::OnHost(Picture& picture) {
  if (!picture.drawn && picture.on_gpu) picture.on_gpu->Download(picture.rgb);
  if (!picture.drawn && !picture.on_gpu) drawer_->DrawOnCpu(picture.scene, picture.rgb);
  picture.drawn = true;
  return picture.rgb;
}

void PictureHistory::Draw(const mjModel* model, mjData* data, std::span<const mjtNum> pose) {
  AdoptLook(model);
  newest_ = &Add(model, data, pose) - pictures_.data();
}

PictureHistory::Picture& PictureHistory::Find(const mjModel* model, std::span<const mjtNum> pose) {
  if (Picture* kept = Kept(pose, look_)) return *kept;
  if (!scratch_) {
    const PoliciesLeftOut left_out;  // it only draws
    scratch_.reset(mj_makeData(model));
  }
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
  uint8_t* out = frames_.data();
  for (const std::span<const mjtNum> pose : poses) {
    out = std::ranges::copy(OnHost(Find(model, pose)), out).out;
  }
  return frames_.bytes();
}

std::span<const uint8_t> PictureHistory::Frame(const mjModel* model, std::span<const mjtNum> pose,
                                               uint64_t look) {
  if (Picture* kept = Kept(pose, look)) return OnHost(*kept);
  AdoptLook(model);
  return OnHost(Find(model, pose));
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

std::span<const std::shared_ptr<const GpuPicture>> PictureHistory::GpuPictures(
    const mjModel* model, std::span<const std::span<const mjtNum>> poses) {
  gpu_pictures_.clear();
  if (!on_gpu_) return {};
  AdoptLook(model);
  for (const std::span<const mjtNum> pose : poses) {
    gpu_pictures_.push_back(Find(model, pose).on_gpu);
    if (!gpu_pictures_.back()) return {};
  }
  return gpu_pictures_;
}

std::span<const uint8_t> PictureHistory::Newest() {
  Picture& picture = pictures_[newest_];
  return picture.pose.empty() ? std::span<const uint8_t>() : OnHost(picture);
}

std::shared_ptr<const GpuPicture> PictureHistory::NewestOnGpu() const {
  const Picture& picture = pictures_[newest_];
  return picture.pose.empty() ? nullptr : picture.on_gpu;
}

}  // namespace mjp

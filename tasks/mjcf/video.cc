#include "tasks/mjcf/video.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "plugin/pictures/mujoco_renderer.h"
#include "tasks/mjcf/words.h"

namespace mjp::app {
namespace {

constexpr int kWidth = 640, kHeight = 480, kFooter = 40;  // pixels
constexpr int kMostPictures = 25;                         // a second
constexpr Color kInk = {40, 44, 52}, kGood = {38, 140, 70};

int StrideOf(double period) {
  return std::max(1, static_cast<int>(std::ceil(1 / (period * kMostPictures) - 1e-9)));
}

int FramesPerSecond(double period, int stride) {
  return std::max(1, static_cast<int>(std::lround(1 / (period * stride))));
}

}  // namespace

std::string VideoCamera(const mjModel* model, const Config& config) {
  if (!config.cameras.empty()) return config.cameras[0];
  const std::vector<std::string> cameras = NamesOf(model, mjOBJ_CAMERA);
  if (!cameras.empty()) return cameras[0];
  throw BadInput("a video needs a camera with a name; write <camera name=...> in the model");
}

WorldVideo::WorldVideo(const std::string& stem, const std::string& camera, double period,
                       mjModel* model, mjData* data)
    : model_(model),
      data_(data),
      source_(MakeMujocoPictureSource(model, {{camera}, kWidth, kHeight, -1})),
      view_(size_t{3} * kWidth * kHeight),
      stride_(StrideOf(period)) {
  const std::filesystem::path folder = std::filesystem::path(stem).parent_path();
  std::error_code code;
  if (!folder.empty()) std::filesystem::create_directories(folder, code);
  if (code) throw BadInput(folder.string() + ": cannot create the folder: " + code.message());
  writer_ = VideoWriter::Open(stem, kWidth, kHeight + kFooter, FramesPerSecond(period, stride_));
}

void WorldVideo::Add(const EpisodeResult& episode) {
  if (episode.steps % stride_ != 0) return;
  mj_kinematics(model_, data_);
  mj_comPos(model_, data_);
  mj_camlight(model_, data_);
  source_->Render(model_, data_, view_);
  Picture picture(kWidth, kHeight + kFooter, 248);
  Paste(picture, view_.data(), kWidth, kHeight, 1, 0, 0);
  char text[100];
  std::snprintf(text, sizeof(text), "seed %u   step %3d   score %.3f", episode.seed, episode.steps,
                episode.max_reward);
  DrawText(picture, text, 16, kHeight + 12, 2, kInk);
  if (episode.success()) DrawText(picture, "solved", kWidth - 130, kHeight + 12, 2, kGood);
  writer_->Add(picture);
}

std::string WorldVideo::Close() {
  writer_->Close();
  return writer_->file();
}

}  // namespace mjp::app

#include "tasks/pusht/episode_video.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "tasks/evaluation/disturbances.h"
#include "tasks/pusht/coverage.h"
#include "tasks/pusht/pictures/raster_source.h"
#include "tasks/pusht/pictures/rasterise.h"
#include "tasks/pusht/pictures/scene_picture.h"

namespace mjp::app {
namespace {

constexpr int kSceneSize = 480;            // pixels
constexpr int kViewFactor = 3;             // enlargement of what the policy sees
constexpr int kMargin = 16, kFooter = 72;  // pixels
constexpr int kViewSize = mjp::kPictureSize * kViewFactor;
constexpr int kWidth = kMargin + kSceneSize + kMargin + kViewSize + kMargin;
constexpr int kHeight = kMargin + kSceneSize + kFooter;
constexpr Color kInk = {40, 44, 52}, kGood = {38, 140, 70}, kTrack = {222, 226, 230};

void DrawBar(Picture& picture, int x, int y, int width, double share) {
  FillRectangle(picture, x, y, width, 10, kTrack);
  FillRectangle(picture, x, y, static_cast<int>(width * share), 10, kGood);
  FillRectangle(picture, x + static_cast<int>(width * kSuccessCoverage), y - 3, 2, 16, kInk);
}

}  // namespace

std::optional<Conditions> SeenThrough(RendererKind renderer, const Conditions& conditions,
                                      const mjp::PolicyConfig& config) {
  if (renderer != RendererKind::kRaster || config.cameras.empty()) return std::nullopt;
  return conditions;
}

SceneView ViewOf(const State& state, const std::optional<Conditions>& seen, uint32_t seed,
                 int tick) {
  SceneView view{seen ? "what the policy sees" : "the scene",
                 std::vector<uint8_t>(mjp::kPictureBytes)};
  const mjp::FlatScene flat = ToFlatScene(state);
  mjp::RasteriseCpu(&flat, 1, view.picture.data());
  if (seen) DisturbPicture(*seen, seed, tick, mjp::kPictureSize, view.picture);
  return view;
}

PushtVideo::PushtVideo(const std::string& folder, const EpisodeResult& episode,
                       const std::optional<Conditions>& seen, std::function<State()> now)
    : seen_(seen), now_(std::move(now)) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) throw mjp::BadInput(folder + ": cannot create the folder: " + code.message());
  writer_ = VideoWriter::Open(folder + "/eval_episode_" + std::to_string(episode.index), kWidth,
                              kHeight, 10);
}

void PushtVideo::Add(const EpisodeResult& episode) {
  const State state = now_();
  const SceneView view = ViewOf(state, seen_, episode.seed, episode.steps);
  Picture picture(kWidth, kHeight, 248);
  DrawScene(picture, state, kMargin, kMargin, kSceneSize);
  const int right = kMargin + kSceneSize + kMargin;
  Paste(picture, view.picture.data(), mjp::kPictureSize, mjp::kPictureSize, kViewFactor, right,
        kMargin);
  DrawText(picture, view.caption, right, kMargin + kViewSize + 8, 2, kInk);
  const double coverage = Coverage(state);
  char text[128];
  const int y = kMargin + kSceneSize + 14;
  std::snprintf(text, sizeof(text), "seed %u   step %3d   coverage %.3f   score %.3f", episode.seed,
                episode.steps, coverage, episode.max_reward);
  DrawText(picture, text, kMargin, y, 2, kInk);
  DrawBar(picture, kMargin, y + 30, kSceneSize, coverage);
  if (episode.success()) DrawText(picture, "solved", right, y + 24, 3, kGood);  // below the score
  writer_->Add(picture);
}

std::string PushtVideo::Close() {
  writer_->Close();
  return writer_->file();
}

}  // namespace mjp::app

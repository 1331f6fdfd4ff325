#include "datasets/dataset.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "datasets/format/columns.h"
#include "datasets/pictures/png.h"

namespace mjp::datasets {
namespace {

constexpr size_t kMostOpen = 8;
constexpr int64_t kFramesAtOnce = 32;  // pictures that are read together

}  // namespace

Dataset::Dataset(std::string folder) : folder_(std::move(folder)) {
  const std::string path = folder_ + "/meta/info.json";
  if (!std::filesystem::exists(path)) {
    throw BadInput(folder_ +
                   ": is no LeRobotDataset, for it lacks meta/info.json; name its folder");
  }
  info_ = ReadInfo(path);
  if (info_.version != "v3.0") {
    throw Unsupported(path + ": is of version " + info_.version +
                      "; mjpolicy convert makes a copy of version v3.0");
  }
  if (info_.episodes > 0) tasks_ = ReadTasks(folder_);
  episodes_ = ReadEpisodes(folder_, info_);
  const auto counted = static_cast<size_t>(info_.episodes);
  if (episodes_.size() < counted) {
    throw BadInput(path + ": counts " + std::to_string(counted) + " episodes, meta/episodes has " +
                   std::to_string(episodes_.size()));
  }
  leftovers_.assign(episodes_.begin() + info_.episodes, episodes_.end());
  episodes_.resize(counted);
  const int64_t frames = episodes_.empty() ? 0 : episodes_.back().to;
  if (frames != info_.frames) {
    throw BadInput(path + ": counts " + std::to_string(info_.frames) +
                   " frames, the episodes in meta/episodes have " + std::to_string(frames));
  }
  for (const Episode& episode : episodes_) {
    first_frames_.try_emplace({episode.data.chunk, episode.data.file}, episode.from);
  }
}

std::string Dataset::DataPath(const Episode& episode) const {
  const PathFields fields{.video_key = "", .chunk = episode.data.chunk, .file = episode.data.file};
  return folder_ + "/" + ExpandPath(info_.data_path, fields, folder_ + "/meta/info.json");
}

std::string Dataset::VideoPath(const Episode& episode, const Feature& feature) const {
  const FileIndex file = episode.videos.at(feature.name).file;
  const PathFields fields{.video_key = feature.name, .chunk = file.chunk, .file = file.file};
  return folder_ + "/" + ExpandPath(info_.video_path, fields, folder_ + "/meta/info.json");
}

int64_t Dataset::FirstRow(const Episode& episode) const {
  return episode.from - first_frames_.at({episode.data.chunk, episode.data.file});
}

std::string Dataset::Where(const std::string& file, size_t episode) const {
  return file + ": episode " + std::to_string(episode);
}

const parquet::Reader& Dataset::Data(const std::string& path) {
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [&](const parquet::Reader& r) { return r.name() == path; });
  if (found != open_.end()) {
    open_.splice(open_.begin(), open_, found);
  } else {
    open_.emplace_front(path);
    if (open_.size() > kMostOpen) open_.pop_back();
  }
  return open_.front();
}

parquet::Column Dataset::Read(size_t episode, const Feature& feature, int64_t first,
                              int64_t count) {
  const Episode& of = episodes_.at(episode);
  const parquet::Reader& file = Data(DataPath(of));
  const std::string where = Where(file.name(), episode);
  return ReadColumn(file, feature, FirstRow(of) + first, count, where);
}

double Dataset::Timestamp(size_t episode, int64_t frame) {
  if (timestamps_.column.rows() == 0 || timestamps_.episode != episode) {
    timestamps_ = {episode, 0, Read(episode, *info_.Find("timestamp"))};
  }
  return timestamps_.column.values.numbers.at(static_cast<size_t>(frame));
}

VideoReader& Dataset::Video(const Episode& episode, const Feature& feature) {
  const std::string path = VideoPath(episode, feature);
  auto& [open_path, reader] = videos_[feature.name];
  if (open_path != path || reader == nullptr) {
    reader = OpenVideo(path);
    open_path = path;
  }
  return *reader;
}

const Picture& Dataset::ReadImage(size_t episode, const Feature& feature, int64_t frame) {
  Frames& frames = frames_[feature.name];
  const auto last = frames.first + static_cast<int64_t>(frames.column.rows());
  if (frames.episode != episode || frame < frames.first || frame >= last) {
    const int64_t count = std::min(kFramesAtOnce, episodes_.at(episode).length - frame);
    frames = {episode, frame, Read(episode, feature, frame, count)};
  }
  const std::string_view png =
      frames.column.values.texts[static_cast<size_t>(frame - frames.first)];
  picture_ = DecodePng({reinterpret_cast<const uint8_t*>(png.data()), png.size()},
                       DataPath(episodes_[episode]));
  return picture_;
}

const Picture& Dataset::ReadPicture(size_t episode, const Feature& feature, int64_t frame) {
  const Episode& of = episodes_.at(episode);
  const auto where = [&] {
    return Where(folder_, episode) + ", frame " + std::to_string(frame) + ", \"" + feature.name +
           "\": ";
  };
  if (frame < 0 || frame >= of.length) throw BadInput(where() + "there is no such frame");
  try {
    const bool image = feature.kind == Kind::kImage;
    const Picture& picture =
        image
            ? ReadImage(episode, feature, frame)
            : Video(of, feature)
                  .At(of.videos.at(feature.name).from + Timestamp(episode, frame), kTimeTolerance);
    if (picture.height != feature.Height() || picture.width != feature.Width()) {
      throw BadInput("has " + std::to_string(picture.height) + " x " +
                     std::to_string(picture.width) + " pixels, info.json says " +
                     std::to_string(feature.Height()) + " x " + std::to_string(feature.Width()));
    }
    return picture;
  } catch (const Error& error) {
    throw Error(error.code(), where() + error.what());
  }
}

}  // namespace mjp::datasets

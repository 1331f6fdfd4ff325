// LeRobotDataset 2.0 and 2.1: a Parquet file and a video per episode, tasks and episodes as lines
// of JSON. Layout: lerobot 0.6.1, scripts/convert_dataset_v21_to_v30.py.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <sstream>

#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "base/key_reader.h"
#include "datasets/convert/array_source.h"
#include "datasets/dataset.h"
#include "datasets/format/columns.h"
#include "datasets/pictures/png.h"
#include "datasets/store.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestList = size_t{256} << 20;
constexpr uint64_t kLargestVideo = uint64_t{1} << 40;

// The objects of a .jsonl file.
std::vector<Json> ReadLines(const std::string& path) {
  std::istringstream text(app::ReadFile(path, kLargestList));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.empty()) continue;
    lines.push_back(ParseJson(line, path + ": line " + std::to_string(lines.size() + 1)));
  }
  return lines;
}

// `each` is called before each part that is compared.
bool SameBytes(const std::string& a, const std::string& b, const std::function<void()>& each) {
  constexpr uint64_t kAtOnce = 4 << 20;
  const RegularFile left(a, kLargestVideo), right(b, kLargestVideo);
  if (left.size() != right.size()) return false;
  for (uint64_t at = 0; at < left.size(); at += kAtOnce) {
    each();
    const uint64_t count = std::min(kAtOnce, left.size() - at);
    if (left.ReadAt(at, count) != right.ReadAt(at, count)) return false;
  }
  return true;
}

class Version2Source {
 public:
  explicit Version2Source(const std::string& folder)
      : folder_(folder), info_(ReadInfo(folder + "/meta/info.json")) {
    if (info_.version == "v3.0") {
      throw BadInput(folder +
                     "/meta/info.json: \"codebase_version\" is v3.0 already: use the folder"
                     " as it is");
    }
    const std::string tasks = folder + "/meta/tasks.jsonl";
    for (const Json& line : ReadLines(tasks)) {
      KeyReader keys(line, tasks);
      const int index = keys.Int("task_index", 0, 2000000000);
      tasks_[index] = keys.Text("task");
    }
    const std::string episodes = folder + "/meta/episodes.jsonl";
    for (const Json& line : ReadLines(episodes)) {
      KeyReader keys(line, episodes);
      if (keys.Int("episode_index", 0, 2000000000) != static_cast<int>(lengths_.size())) {
        throw keys.Bad("episode_index", "is not " + std::to_string(lengths_.size()));
      }
      lengths_.push_back(keys.Int("length", 1, 2000000000));
    }
    if (static_cast<int64_t>(lengths_.size()) != info_.episodes) {
      throw BadInput(folder + "/meta/info.json: counts " + std::to_string(info_.episodes) +
                     " episodes, episodes.jsonl has " + std::to_string(lengths_.size()));
    }
  }

  const Info& info() const { return info_; }
  std::string Layout() const { return "LeRobot " + info_.version; }
  int64_t episodes() const { return info_.episodes; }
  int64_t Length(int64_t episode) const { return lengths_[static_cast<size_t>(episode)]; }

  // Throws Error if an episode that the destination has is not what the source holds now. Of images
  // the first is looked at.
  void CheckBegun(const ConvertOptions& options, Dataset& begun, size_t episode) const {
    const Episode& of = begun.episodes()[episode];
    if (of.index >= episodes() || Length(of.index) != of.length)
      throw OtherSource(options, of.index, "its length");
    const std::string path = Path(info_.data_path, of.index, "");
    const parquet::Reader file(path);
    CheckBegunTasks(file, options, begun, episode);
    for (const Feature& feature : info_.features) {
      if (IsDefaultFeature(feature.name)) continue;
      bool same;
      if (feature.kind == Kind::kVideo) {
        same = SameBytes(
            Path(info_.video_path, of.index, feature.name), begun.VideoPath(of, feature),
            [&] { TellCompared(options, Layout(), static_cast<int64_t>(episode), episodes()); });
      } else {
        const int64_t rows = feature.kind == Kind::kImage ? 1 : of.length;
        const parquet::Column now = ReadColumn(file, feature, 0, rows, path);
        const parquet::Column then = begun.Read(episode, feature, 0, rows);
        same = now.values.ints == then.values.ints && now.values.numbers == then.values.numbers &&
               now.values.texts == then.values.texts;
      }
      if (!same) throw OtherSource(options, of.index, "\"" + feature.name + "\"");
    }
    TellCompared(options, Layout(), static_cast<int64_t>(episode) + 1, episodes());
  }

  // Adds an episode to `store`.
  void Add(int64_t index, Store& store) const {
    const std::string path = Path(info_.data_path, index, "");
    const std::string where = path + ": episode " + std::to_string(index);
    const parquet::Reader file(path);
    NewEpisode episode;
    episode.frames = Length(index);
    if (file.metadata().rows != episode.frames) {
      throw BadInput(where + ": has " + std::to_string(file.metadata().rows) +
                     " rows, episodes.jsonl says " + std::to_string(episode.frames));
    }
    ReadTasks(file, where, episode);
    CheckTimes(file, where, episode.frames);
    std::map<std::string, parquet::Column> columns;  // what texts and pictures point into
    for (const Feature& feature : info_.features) {
      if (IsDefaultFeature(feature.name)) continue;
      if (feature.kind == Kind::kVideo) {
        TakeVideo(index, feature, store, episode);
        continue;
      }
      parquet::Column& column = columns[feature.name];
      column = ReadColumn(file, feature, 0, episode.frames, where);
      if (feature.kind == Kind::kImage) {
        episode.picture_statistics[feature.name] = ImageStatistics(column, where);
      } else {
        episode.values[feature.name] = column.values;
      }
    }
    episode.png = [&](const Feature& feature, int64_t frame) {
      const std::string_view png =
          columns.at(feature.name).values.texts[static_cast<size_t>(frame)];
      return std::vector<uint8_t>(png.begin(), png.end());
    };
    store.Add(episode);
  }

 private:
  // The same of each frame's task.
  void CheckBegunTasks(const parquet::Reader& file, const ConvertOptions& options, Dataset& begun,
                       size_t episode) const {
    const Episode& of = begun.episodes()[episode];
    NewEpisode now;
    now.frames = of.length;
    ReadTasks(file, file.name(), now);
    const parquet::Column then = begun.Read(episode, *begun.info().Find("task_index"));
    const std::vector<std::string>& texts = begun.tasks().texts;
    for (size_t frame = 0; frame < now.task.size(); ++frame) {
      const auto index = static_cast<size_t>(then.values.ints[frame]);
      if (index >= texts.size() || texts[index] != now.tasks[static_cast<size_t>(now.task[frame])])
        throw OtherSource(options, of.index, "its task");
    }
  }

  std::string Path(const std::string& pattern, int64_t episode, const std::string& key) const {
    const PathFields fields{
        .video_key = key, .chunk = episode / info_.chunk_size, .file = 0, .episode = episode};
    return folder_ + "/" + ExpandPath(pattern, fields, folder_ + "/meta/info.json");
  }

  void ReadTasks(const parquet::Reader& file, const std::string& where, NewEpisode& episode) const {
    const parquet::Column column =
        ReadColumn(file, *info_.Find("task_index"), 0, episode.frames, where);
    for (const int64_t index : column.values.ints) {
      const auto text = tasks_.find(index);
      if (text == tasks_.end()) {
        throw BadInput(where + ": has the task_index " + std::to_string(index) +
                       ", which meta/tasks.jsonl has not");
      }
      const auto known = std::find(episode.tasks.begin(), episode.tasks.end(), text->second);
      episode.task.push_back(known - episode.tasks.begin());
      if (known == episode.tasks.end()) episode.tasks.push_back(text->second);
    }
  }

  // The copy's times are frame / fps: the source's must be those.
  void CheckTimes(const parquet::Reader& file, const std::string& where, int64_t frames) const {
    const parquet::Column times = ReadColumn(file, *info_.Find("timestamp"), 0, frames, where);
    for (size_t frame = 0; frame < times.values.numbers.size(); ++frame) {
      const double wanted = static_cast<double>(frame) / info_.fps;
      if (std::abs(times.values.numbers[frame] - wanted) <= kTimeTolerance + wanted * 1.2e-7) {
        continue;
      }
      throw BadInput(where + ": frame " + std::to_string(frame) + " is at " +
                     std::to_string(times.values.numbers[frame]) + " s, at " +
                     std::to_string(info_.fps) + " frames per second it would be at " +
                     std::to_string(wanted) + " s");
    }
  }

  static FeatureStatistics ImageStatistics(const parquet::Column& column,
                                           const std::string& where) {
    PictureStatistics statistics;
    for (const int64_t frame : SampledFrames(static_cast<int64_t>(column.rows()))) {
      const std::string_view png = column.values.texts[static_cast<size_t>(frame)];
      statistics.Add(DecodePng({reinterpret_cast<const uint8_t*>(png.data()), png.size()},
                               where + ", frame " + std::to_string(frame)));
    }
    return statistics.Result();
  }

  // Copies a video to where the store takes it from, once its frames are where they should be.
  void TakeVideo(int64_t index, const Feature& feature, const Store& store,
                 NewEpisode& episode) const {
    const std::string path = Path(info_.video_path, index, feature.name);
    const auto video = OpenVideo(path);
    if (video->frames() != episode.frames) {
      throw BadInput(path + ": episode " + std::to_string(index) + " has " +
                     std::to_string(video->frames()) + " frames, its numbers " +
                     std::to_string(episode.frames));
    }
    PictureStatistics statistics;
    for (const int64_t frame : SampledFrames(episode.frames)) {
      statistics.Add(video->At(static_cast<double>(frame) / info_.fps, kTimeTolerance));
    }
    episode.picture_statistics[feature.name] = statistics.Result();
    const std::string copy = store.workplace() + "/" + feature.name + ".mp4";
    std::error_code code;
    fs::copy_file(path, copy, fs::copy_options::overwrite_existing, code);
    if (code) throw BadInput(copy + ": cannot copy " + path + ": " + code.message());
    episode.videos[feature.name] = copy;
  }

  std::string folder_;
  Info info_;
  std::map<int64_t, std::string> tasks_;
  std::vector<int64_t> lengths_;
};

}  // namespace

ConvertResult ConvertVersion2(const ConvertOptions& options) {
  const Version2Source source(options.source);
  if (!options.task.empty() || options.fps != 0 || !options.state.empty() || options.video) {
    throw Error(ExitCode::kUsage,
                options.source +
                    ": a LeRobotDataset has its own tasks, rate, state and pictures; "
                    "leave out --task, --fps, --state and --video");
  }
  ConvertResult result{.layout = source.Layout(), .episodes = 0, .frames = 0, .whole = true};
  Info wanted = source.info();
  wanted.data_path = Info().data_path;
  wanted.video_path = Info().video_path;
  for (const char* key : {"total_chunks", "total_videos", "video_path"}) wanted.read.erase(key);
  Store store(options.destination, wanted, [&](Dataset& begun) {
    for (size_t episode = 0; episode < begun.episodes().size(); ++episode)
      source.CheckBegun(options, begun, episode);
  });
  for (int64_t episode = store.info().episodes; episode < source.episodes(); ++episode) {
    source.Add(episode, store);
    if (options.progress && !options.progress(episode + 1, source.episodes())) {
      result.whole = episode + 1 == source.episodes();
      break;
    }
  }
  result.episodes = store.info().episodes;
  result.frames = store.info().frames;
  return result;
}

}  // namespace mjp::datasets

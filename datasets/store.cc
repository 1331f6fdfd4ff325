#include "datasets/store.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/folders.h"
#include "datasets/data_file.h"
#include "datasets/dataset.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kDataFileBytes = 8 << 20;  // an episode that follows starts another file
constexpr size_t kEpisodesPerFile = 1000;     // of meta/episodes

FileIndex Next(FileIndex index, int64_t chunk_size) {
  return index.file + 1 < chunk_size ? FileIndex{index.chunk, index.file + 1}
                                     : FileIndex{index.chunk + 1, 0};
}

bool Less(FileIndex a, FileIndex b) {
  return a.chunk != b.chunk ? a.chunk < b.chunk : a.file < b.file;
}

// "image (240, 320, 3)"
std::string KindText(const Feature& feature) {
  std::string extents;
  for (const int64_t extent : feature.shape)
    extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  return feature.dtype + " (" + extents + ")";
}

// What keeps two descriptions from being of one data set, or "".
std::string Difference(const Info& have, const Info& want) {
  if (have.fps != want.fps) {
    return std::to_string(have.fps) + " frames per second, not " + std::to_string(want.fps);
  }
  size_t others = 0;
  for (const Feature& feature : want.features) {
    const Feature* found = have.Find(feature.name);
    if (IsDefaultFeature(feature.name)) continue;
    ++others;
    if (found == nullptr) return "no feature \"" + feature.name + "\"";
    if (found->dtype != feature.dtype || found->shape != feature.shape) {
      return "\"" + feature.name + "\" as " + KindText(*found) + ", not " + KindText(feature);
    }
    // of an earlier build's recording nothing is known, and that stays so
    if (!found->look.is_null() && found->look != feature.look) {
      return "pictures of another look of \"" + feature.name + "\": " + JsonText(found->look);
    }
  }
  if (others + DefaultFeatures().size() != have.features.size()) return "further features";
  if (have.data_path != Info().data_path || have.video_path != Info().video_path) {
    return "files in other places than LeRobot's";
  }
  return "";
}

// Removes what nothing refers to, if it is there.
void Remove(const std::string& path) {
  std::error_code none;
  fs::remove(path, none);
}

std::string InfoPath(const std::string& folder) { return folder + "/meta/info.json"; }

// Throws Error where `folder` holds what is no data set.
std::string Checked(std::string folder) {
  std::error_code none;
  if (fs::exists(InfoPath(folder)) || fs::exists(Workplace::In(folder))) return folder;
  if (fs::exists(folder) && !fs::is_empty(folder, none)) {
    throw BadInput(folder + ": is neither empty nor a data set; name another folder");
  }
  return folder;
}

}  // namespace

Store::Store(std::string folder, const Info& wanted, const CheckDataset& check)
    : folder_(Checked(std::move(folder))), workplace_(folder_) {
  if (!fs::exists(InfoPath(folder_))) {
    Create(wanted);
    return;
  }
  Dataset dataset(folder_);
  Read(dataset, wanted);
  if (check) check(dataset);
  if (wanted.read.is_object()) info_.read.update(wanted.read);
  Resume(dataset);
}

void Store::Create(const Info& wanted) {
  info_ = Info();
  info_.version = "v3.0";
  info_.fps = wanted.fps;
  info_.robot_type = wanted.robot_type;
  info_.read = wanted.read;
  for (const Feature& feature : wanted.features) {
    if (!IsDefaultFeature(feature.name)) info_.features.push_back(feature);
  }
  for (Feature& feature : DefaultFeatures()) info_.features.push_back(std::move(feature));
  const std::string meta = folder_ + "/meta";
  MakeFolders(meta);
  try {
    app::WriteFileAtomically(InfoPath(folder_), InfoText(info_));
  } catch (const Error&) {
    Remove(meta);  // so that the same command finds an empty folder again
    throw;
  }
}

void Store::Read(const Dataset& dataset, const Info& wanted) {
  info_ = dataset.info();
  const std::string difference = Difference(info_, wanted);
  if (!difference.empty()) {
    throw BadInput(folder_ + ": cannot be added to, because it has " + difference +
                   "; record as it was recorded, or into another folder");
  }
  tasks_ = dataset.tasks().texts;
  for (const Episode& episode : dataset.episodes()) {
    for (const Feature& feature : info_.features) {
      if (feature.kind == Kind::kText) continue;
      const auto found = episode.statistics.find(feature.name);
      if (found == episode.statistics.end() || found->second.quantiles[0].empty()) {
        throw Unsupported(episode.table + ": episode " + std::to_string(episode.index) +
                          " has no statistics of \"" + feature.name +
                          "\", so those of the data set cannot be continued; convert it first");
      }
      Combine(statistics_[feature.name], found->second);
    }
    if (Less(data_file_, episode.data)) data_file_ = episode.data;
    for (const auto& [name, part] : episode.videos) {
      if (Less(video_files_[name], part.file)) video_files_[name] = part.file;
    }
  }
}

void Store::Resume(const Dataset& dataset) {
  DropLeftovers(dataset);
  if (dataset.episodes().empty()) return;
  DropRows(dataset);
  // files that are whole are not touched again: what follows goes to new ones
  std::sscanf(dataset.episodes().back().table.substr(folder_.size()).c_str(),
              "/meta/episodes/chunk-%ld/file-%ld", &episodes_file_.chunk, &episodes_file_.file);
  episodes_file_ = Next(episodes_file_, info_.chunk_size);
  data_file_ = Next(data_file_, info_.chunk_size);
  Remove(folder_ + "/" +
         ExpandPath(info_.data_path,
                    {.video_key = "", .chunk = data_file_.chunk, .file = data_file_.file},
                    folder_));
}

// Rows of meta/episodes for which info.json was not replaced any more.
void Store::DropLeftovers(const Dataset& dataset) const {
  for (const Episode& leftover : dataset.leftovers()) {
    std::vector<Episode> kept;
    for (const Episode& episode : dataset.episodes()) {
      if (episode.table == leftover.table) kept.push_back(episode);
    }
    if (kept.empty()) {
      Remove(leftover.table);
      continue;
    }
    FileIndex place;
    std::sscanf(leftover.table.substr(folder_.size()).c_str(), "/meta/episodes/chunk-%ld/file-%ld",
                &place.chunk, &place.file);
    WriteFileAtomically(leftover.table, EpisodesFile(kept, info_, place));
  }
}

// Rows of the last data file that belong to an episode which was not recorded any more.
void Store::DropRows(const Dataset& dataset) const {
  const Episode& last = dataset.episodes().back();
  const std::string path = dataset.DataPath(last);
  const int64_t wanted = dataset.FirstRow(last) + last.length;
  parquet::Metadata metadata = parquet::Reader(path).metadata();
  if (metadata.rows <= wanted) return;
  parquet::Writer writer = DataWriter(info_);
  writer.Continue(metadata, wanted, path);
  std::vector<uint8_t> bytes = RegularFile(path, uint64_t{1} << 40).ReadAt(0, writer.size());
  const std::vector<uint8_t> footer = writer.Footer();
  bytes.insert(bytes.end(), footer.begin(), footer.end());
  WriteFileAtomically(path, bytes);
}

std::vector<int64_t> Store::TaskIndices(const NewEpisode& episode,
                                        std::vector<std::string>& texts) const {
  if (episode.frames < 1 || episode.task.size() != static_cast<size_t>(episode.frames)) {
    throw BadInput("an episode has at least one frame, and a task for each");
  }
  std::vector<int64_t> indices;
  for (const std::string& text : episode.tasks) {
    const auto found = std::find(texts.begin(), texts.end(), text);
    indices.push_back(found - texts.begin());
    if (found == texts.end()) texts.push_back(text);
  }
  std::vector<int64_t> of_frames;
  for (const int64_t task : episode.task) {
    of_frames.push_back(indices.at(static_cast<size_t>(task)));
  }
  return of_frames;
}

void Store::AddVideos(const NewEpisode& episode, Episode& placed) {
  for (const Feature& feature : info_.features) {
    if (feature.kind != Kind::kVideo) continue;
    const auto last = video_files_.find(feature.name);
    const FileIndex index =
        last == video_files_.end() ? FileIndex{} : Next(last->second, info_.chunk_size);
    const std::string path =
        folder_ + "/" +
        ExpandPath(info_.video_path,
                   {.video_key = feature.name, .chunk = index.chunk, .file = index.file}, folder_);
    MakeFolders(fs::path(path).parent_path());
    RenameDurably(episode.videos.at(feature.name), path);
    placed.videos[feature.name] = {index, 0, static_cast<double>(episode.frames) / info_.fps};
  }
}

void Store::Add(const NewEpisode& episode) {
  std::vector<std::string> tasks = tasks_;
  const std::vector<int64_t> indices = TaskIndices(episode, tasks);
  Episode placed;
  placed.index = info_.episodes;
  placed.length = episode.frames;
  placed.from = info_.frames;
  placed.to = info_.frames + episode.frames;
  placed.tasks = episode.tasks;
  const DataRows rows{episode, info_, placed, indices};
  placed.statistics = EpisodeStatistics(rows);

  AddVideos(episode, placed);
  FileIndex file = data_file_;
  parquet::Writer writer = data_ ? *data_ : DataWriter(info_);
  if (writer.size() > kDataFileBytes) {
    file = Next(file, info_.chunk_size);
    writer = DataWriter(info_);
  }
  placed.data = file;
  const std::string path =
      folder_ + "/" +
      ExpandPath(info_.data_path, {.video_key = "", .chunk = file.chunk, .file = file.file},
                 folder_);
  const std::string temporary = workplace() + "/data.parquet";
  MakeFolders(fs::path(path).parent_path());
  WriteDataFile(path, temporary, rows, writer);
  RenameDurably(temporary, path);
  if (tasks.size() != tasks_.size()) {
    WriteFileAtomically(folder_ + "/meta/tasks.parquet", TasksFile(tasks));
  }
  Record(std::move(placed), static_cast<int64_t>(tasks.size()));
  tasks_ = std::move(tasks);
  data_file_ = file;
  data_ = std::move(writer);
}

void Store::Record(Episode placed, int64_t tasks) {
  Info info = info_;
  info.episodes = placed.index + 1;
  info.frames = placed.to;
  info.tasks = tasks;
  Statistics statistics = statistics_;
  for (const auto& [name, of] : placed.statistics) Combine(statistics[name], of);
  std::vector<Episode> recent = recent_;
  FileIndex file = episodes_file_;
  if (recent.size() == kEpisodesPerFile) {
    recent.clear();
    file = Next(file, info.chunk_size);
  }
  recent.push_back(std::move(placed));
  const std::string path = folder_ + "/" + EpisodesPath(file);
  MakeFolders(fs::path(path).parent_path());
  WriteFileAtomically(path, EpisodesFile(recent, info, file));
  app::WriteFileAtomically(folder_ + "/meta/stats.json", StatisticsText(statistics, info.features));
  app::WriteFileAtomically(InfoPath(folder_), InfoText(info));
  for (const auto& [name, part] : recent.back().videos) video_files_[name] = part.file;
  info_ = std::move(info);
  statistics_ = std::move(statistics);
  recent_ = std::move(recent);
  episodes_file_ = file;
}

}  // namespace mjp::datasets

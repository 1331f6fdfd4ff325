#include "datasets/recording/spool.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <list>
#include <memory>

#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "base/key_reader.h"
#include "datasets/data_file.h"
#include "datasets/format/whole_numbers.h"
#include "datasets/pictures/png.h"
#include "datasets/video/video.h"

namespace mjp::datasets {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr uint64_t kLargestSpool = uint64_t{1} << 42;

std::string FramesPath(const std::string& folder) { return folder + "/frames.bin"; }
std::string EndPath(const std::string& folder) { return folder + "/episode.json"; }

template <class T>
const T& Given(const std::map<std::string, T>& values, const Feature& feature) {
  const auto found = values.find(feature.name);
  if (found == values.end()) throw BadInput("a frame has no \"" + feature.name + "\"");
  return found->second;
}

void PutBytes(const void* bytes, size_t size, std::vector<uint8_t>& out) {
  const auto* begin = static_cast<const uint8_t*>(bytes);
  out.insert(out.end(), begin, begin + size);
}

void PutNumbers(const std::vector<double>& numbers, const Feature& feature,
                std::vector<uint8_t>& out) {
  if (static_cast<int64_t>(numbers.size()) != feature.Elements()) {
    throw BadInput("a frame has " + std::to_string(numbers.size()) + " values of \"" +
                   feature.name + "\", not " + std::to_string(feature.Elements()));
  }
  const bool whole = feature.kind == Kind::kInteger || feature.kind == Kind::kBool;
  const bool single = feature.kind == Kind::kFloat;
  const auto [lowest, highest] = feature.Range();
  const int64_t least = std::max(lowest, -kMostExact), most = std::min(highest, kMostExact);
  for (const double number : numbers) {
    const bool outside =
        whole && (number < static_cast<double>(least) || number > static_cast<double>(most));
    const bool finite = std::isfinite(single ? static_cast<float>(number) : number);
    if (finite && !outside && (!whole || number == std::nearbyint(number))) continue;
    if (single && std::isfinite(number)) {
      throw BadInput("\"" + feature.name + "\" has the value " + Json(number).dump() +
                     ", which is beyond float32 (3.4e38); give it in another unit");
    }
    const std::string value = "\"" + feature.name + "\" has the value " + std::to_string(number);
    if (!whole) throw BadInput(value + ", which is not finite");
    if (number != std::nearbyint(number)) throw BadInput(value + ", which is no whole number");
    throw BadInput(value + "; " + feature.dtype + " is taken from " + std::to_string(least) +
                   " to " + std::to_string(most));
  }
  PutBytes(numbers.data(), numbers.size() * sizeof(double), out);
}

void PutPicture(const Picture& picture, const Feature& feature, std::vector<uint8_t>& out) {
  if (picture.height != feature.Height() || picture.width != feature.Width() ||
      picture.rgb.size() != picture.Bytes()) {
    throw BadInput("a picture of \"" + feature.name + "\" has " + std::to_string(picture.height) +
                   " x " + std::to_string(picture.width) + " pixels, not " +
                   std::to_string(feature.Height()) + " x " + std::to_string(feature.Width()));
  }
  PutBytes(picture.rgb.data(), picture.rgb.size(), out);
}

// Reads frames one after the other.
class SpoolReader {
 public:
  SpoolReader(const std::string& folder, const Info& info)
      : folder_(folder), info_(info), file_(FramesPath(folder), kLargestSpool) {}

  // The next frame: values are appended to `values`, pictures replaced.
  void Next(std::map<std::string, parquet::Values>* values,
            std::map<std::string, Picture>& pictures, std::list<std::string>& texts) {
    for (const Feature& feature : info_.features) {
      if (IsDefaultFeature(feature.name)) continue;
      if (feature.IsPicture()) {
        Picture& picture = pictures[feature.name];
        picture.height = feature.Height();
        picture.width = feature.Width();
        picture.rgb.clear();
        Read(picture.Bytes(), picture.rgb);
      } else if (feature.kind == Kind::kText) {
        uint32_t size;
        std::memcpy(&size, Take(sizeof size), sizeof size);
        const auto* bytes = reinterpret_cast<const char*>(Take(size));
        if (values == nullptr) continue;
        (*values)[feature.name].texts.push_back(texts.emplace_back(bytes, size));
      } else {
        for (int64_t i = 0; i < feature.Elements(); ++i) {
          double number;
          std::memcpy(&number, Take(sizeof number), sizeof number);
          if (values != nullptr) Put(number, feature.kind, (*values)[feature.name]);
        }
      }
    }
  }

  // Throws Error where something follows the frames that were read.
  void CheckEnd() const {
    if (left_ > 0) throw Damaged("more");
  }

 private:
  const uint8_t* Take(uint64_t count) {
    bytes_.clear();
    bytes_.reserve(1);
    Read(count, bytes_);
    return bytes_.data();
  }
  void Read(uint64_t count, std::vector<uint8_t>& out) {
    if (count > left_) throw Damaged("fewer");
    file_.Read(count, out);
    left_ -= count;
  }
  Error Damaged(const std::string& what) const {
    return BadInput(FramesPath(folder_) + ": has " + what +
                    " bytes than its frames: the episode is damaged; move " + folder_ +
                    " and those after it away to go on without them");
  }
  static void Put(double number, Kind kind, parquet::Values& out) {
    const bool whole = kind == Kind::kInteger || kind == Kind::kBool;
    whole ? out.ints.push_back(static_cast<int64_t>(number)) : out.numbers.push_back(number);
  }

  const std::string folder_;
  const Info& info_;
  RegularFile file_;
  uint64_t left_ = file_.size();  // bytes
  std::vector<uint8_t> bytes_;
};

// Takes the pictures of all frames, in order: videos and statistics.
class PictureSink {
 public:
  PictureSink(const std::string& folder, const Info& info, int64_t frames)
      : sampled_(SampledFrames(frames)) {
    for (const Feature& feature : info.features) {
      if (feature.IsPicture()) statistics_.try_emplace(feature.name);
      if (feature.kind != Kind::kVideo) continue;
      paths_[feature.name] = folder + "/" + feature.name + ".mp4";
      videos_[feature.name] =
          CreateVideo(paths_[feature.name], feature.Height(), feature.Width(), info.fps);
    }
  }
  void Add(int64_t frame, const std::map<std::string, Picture>& pictures) {
    const bool sampled = std::binary_search(sampled_.begin(), sampled_.end(), frame);
    for (const auto& [name, picture] : pictures) {
      if (sampled) statistics_.at(name).Add(picture);
      if (const auto video = videos_.find(name); video != videos_.end())
        video->second->Add(picture);
    }
  }
  void Finish(NewEpisode& episode) {
    for (const auto& [name, video] : videos_) video->Finish();
    episode.videos = paths_;
    for (const auto& [name, statistics] : statistics_) {
      episode.picture_statistics[name] = statistics.Result();
    }
  }

 private:
  std::vector<int64_t> sampled_;
  std::map<std::string, PictureStatistics> statistics_;
  std::map<std::string, std::unique_ptr<VideoWriter>> videos_;
  std::map<std::string, std::string> paths_;
};

NewEpisode ReadEnd(const std::string& folder) {
  NewEpisode episode;
  const std::string path = EndPath(folder);
  const Json json = ReadJson(path, {.bytes = size_t{256} << 20});
  KeyReader keys(json, path);
  episode.frames = keys.Int("frames", 1, 2000000000);
  for (const Json& task : keys.Required("tasks")) {
    if (!task.is_string()) throw keys.Bad("tasks", "are not texts");
    episode.tasks.push_back(task.get<std::string>());
  }
  const auto frames = static_cast<size_t>(episode.frames);
  for (const int task :
       keys.Ints("task", frames, frames, 0, static_cast<int>(episode.tasks.size()) - 1)) {
    episode.task.push_back(task);
  }
  return episode;
}

}  // namespace

SpoolWriter::SpoolWriter(std::string folder, const Info& info)
    : folder_(std::move(folder)), info_(info) {
  MakeFolders(folder_);
  const std::string path = FramesPath(folder_);
  file_ = FileDescriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file_.get() < 0) throw FileError("cannot create", path);
}

void SpoolWriter::CheckWritten() const {
  if (!torn_) return;
  throw BadInput(FramesPath(folder_) +
                 ": frames of this episode could not be written; record it again");
}

void SpoolWriter::Write(WriteFunction* write) {
  torn_ = true;  // until it is known
  write(file_.get(), buffer_, FramesPath(folder_));
  torn_ = false;
  buffer_.clear();
}

void SpoolWriter::Add(const Frame& frame) {
  CheckWritten();
  const size_t before = buffer_.size();
  try {
    if (frame.task.empty()) throw BadInput("a frame has no task: say in words what is being done");
    for (const Feature& feature : info_.features) {
      if (IsDefaultFeature(feature.name)) continue;
      if (feature.IsPicture()) {
        PutPicture(Given(frame.pictures, feature), feature, buffer_);
      } else if (feature.kind == Kind::kText) {
        const std::string& text = Given(frame.texts, feature);
        const auto size = static_cast<uint32_t>(text.size());
        PutBytes(&size, sizeof size, buffer_);
        PutBytes(text.data(), text.size(), buffer_);
      } else {
        PutNumbers(Given(frame.numbers, feature), feature, buffer_);
      }
    }
  } catch (...) {
    buffer_.resize(before);
    throw;
  }
  const auto known = std::find(tasks_.begin(), tasks_.end(), frame.task);
  task_.push_back(known - tasks_.begin());
  if (known == tasks_.end()) tasks_.push_back(frame.task);
  ++frames_;
  if (buffer_.size() >= kBufferBytes) Write(WriteAll);
}

void SpoolWriter::Close() {
  CheckWritten();
  Write(WriteDurably);
  if (file_.Close() != 0) throw FileError("cannot write", FramesPath(folder_));
  const Json end = {{"frames", frames_}, {"tasks", tasks_}, {"task", task_}};
  app::WriteFileAtomically(EndPath(folder_), end.dump());
}

bool IsSpooled(const std::string& folder) {
  std::error_code none;
  return std::filesystem::exists(EndPath(folder), none);
}

std::vector<std::string> SpooledEpisodes(const std::string& dataset) {
  std::vector<std::string> folders;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(Workplace::In(dataset), none)) {
    if (IsSpooled(entry.path().string())) folders.push_back(entry.path().string());
  }
  std::ranges::sort(folders);
  return folders;
}

bool AddSpooled(const std::string& folder, Store& store, const std::atomic<bool>& stop) {
  const Info& info = store.info();
  NewEpisode episode = ReadEnd(folder);
  std::list<std::string> texts;
  std::map<std::string, Picture> pictures;
  SpoolReader reader(folder, info);
  PictureSink sink(folder, info, episode.frames);
  for (int64_t frame = 0; frame < episode.frames; ++frame) {
    if (stop) return false;
    reader.Next(&episode.values, pictures, texts);
    sink.Add(frame, pictures);
  }
  reader.CheckEnd();
  sink.Finish(episode);
  // images are asked for after all else is known, in the same order
  SpoolReader again(folder, info);
  int64_t next = 0;
  episode.png = [&](const Feature& feature, int64_t frame) {
    for (; next <= frame; ++next) again.Next(nullptr, pictures, texts);
    return EncodePng(pictures.at(feature.name));
  };
  store.Add(episode);
  return true;
}

}  // namespace mjp::datasets

#include "datasets/data_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;
using parquet::LeafValues;
using parquet::Type;

constexpr uint64_t kGroupBytes = 64 << 20;  // of pictures in a row group, about
constexpr uint64_t kCopyBytes = 4 << 20;

Type TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kBool:
      return Type::kBool;
    case Kind::kInteger:
      return Type::kInt64;
    case Kind::kFloat:
      return Type::kFloat;
    case Kind::kDouble:
      return Type::kDouble;
    default:
      return Type::kBytes;
  }
}

bool IsScalar(const Feature& feature) { return feature.shape.size() == 1 && feature.shape[0] == 1; }

// The five features that follow from where a frame is.
parquet::Values DefaultValues(const DataRows& rows, const std::string& name) {
  parquet::Values values;
  for (int64_t frame = 0; frame < rows.episode.frames; ++frame) {
    if (name == "timestamp") {
      const double seconds = static_cast<double>(frame) / rows.info.fps;
      values.numbers.push_back(static_cast<float>(seconds));
    } else {
      values.ints.push_back(name == "frame_index"     ? frame
                            : name == "episode_index" ? rows.placed.index
                            : name == "index"         ? rows.placed.from + frame
                                                      : rows.tasks[static_cast<size_t>(frame)]);
    }
  }
  return values;
}

parquet::Values ValuesOf(const DataRows& rows, const Feature& feature) {
  if (IsDefaultFeature(feature.name)) return DefaultValues(rows, feature.name);
  const auto found = rows.episode.values.find(feature.name);
  const auto wanted = static_cast<size_t>(rows.episode.frames * feature.Elements());
  const bool real = feature.kind == Kind::kFloat || feature.kind == Kind::kDouble;
  if (found == rows.episode.values.end() ||
      (real                          ? found->second.numbers.size()
       : feature.kind == Kind::kText ? found->second.texts.size()
                                     : found->second.ints.size()) != wanted) {
    throw BadInput("episode " + std::to_string(rows.placed.index) + ": \"" + feature.name +
                   "\" has not " + std::to_string(feature.Elements()) + " values in each frame");
  }
  return found->second;
}

// A leaf with the values of some frames.
LeafValues Slice(const parquet::Values& all, const Feature& feature, int64_t first, int64_t last) {
  const auto elements = static_cast<size_t>(feature.Elements());
  const auto begin = static_cast<ptrdiff_t>(static_cast<size_t>(first) * elements);
  const auto end = static_cast<ptrdiff_t>(static_cast<size_t>(last) * elements);
  LeafValues leaf;
  const auto take = [&](const auto& from, auto& to) {
    if (!from.empty()) to.assign(from.begin() + begin, from.begin() + end);
  };
  take(all.ints, leaf.values.ints);
  take(all.numbers, leaf.values.numbers);
  take(all.texts, leaf.values.texts);
  if (IsScalar(feature)) return leaf;
  for (size_t row = 0; row <= static_cast<size_t>(last - first); ++row) {
    leaf.offsets.push_back(row * elements);
  }
  leaf.inner.assign(feature.shape.begin() + 1, feature.shape.end());
  return leaf;
}

// PNG files of the frames of a row group, by feature, with their names.
class GroupPictures {
 public:
  // Takes frames from `first` on until the group is large enough; returns the end.
  int64_t Fill(const DataRows& rows, int64_t first) {
    uint64_t bytes = 0;
    int64_t frame = first;
    for (; frame < rows.episode.frames && bytes < kGroupBytes; ++frame) {
      std::string digits = std::to_string(frame);
      digits.insert(0, digits.size() < 6 ? 6 - digits.size() : 0, '0');
      names_.push_back("frame-" + digits + ".png");
      for (const Feature& feature : rows.info.features) {
        if (feature.kind != Kind::kImage) continue;
        const std::vector<uint8_t> png = rows.episode.png(feature, frame);
        bytes += png.size();
        files_[feature.name].emplace_back(png.begin(), png.end());
      }
    }
    return frame;
  }
  void AddLeaves(const Feature& feature, std::vector<LeafValues>& leaves) const {
    const std::vector<std::string>& files = files_.at(feature.name);
    leaves.emplace_back().values.texts.assign(files.begin(), files.end());
    leaves.emplace_back().values.texts.assign(names_.begin(), names_.end());
  }

 private:
  std::map<std::string, std::vector<std::string>> files_;
  std::vector<std::string> names_;
};

// The beginning of a file that grows.
void CopyBeginning(const std::string& old, uint64_t size, int fd, const std::string& path) {
  const std::vector<uint8_t> magic = parquet::Writer::Begin();
  if (size == magic.size()) return WriteAll(fd, magic, path);
  const RegularFile file(old, uint64_t{1} << 40);
  for (uint64_t at = 0; at < size; at += kCopyBytes) {
    WriteAll(fd, file.ReadAt(at, std::min(kCopyBytes, size - at)), path);
  }
}

void CheckFinite(const parquet::Values& values, const DataRows& rows, const Feature& feature) {
  for (size_t i = 0; i < values.numbers.size(); ++i) {
    if (std::isfinite(values.numbers[i])) continue;
    const auto frame = static_cast<int64_t>(i) / feature.Elements();
    throw BadInput("episode " + std::to_string(rows.placed.index) + ", frame " +
                   std::to_string(frame) + ": \"" + feature.name + "\" is not finite" +
                   (feature.kind == Kind::kFloat ? ", or beyond float32 (3.4e38)" : ""));
  }
}

}  // namespace

parquet::Writer DataWriter(const Info& info) {
  std::vector<parquet::Field> fields;
  for (const Feature& feature : info.features) {
    if (feature.kind == Kind::kVideo) continue;
    fields.push_back({.name = feature.name,
                      .type = TypeOf(feature.kind),
                      .text = feature.kind == Kind::kText,
                      .lists = IsScalar(feature) ? 0 : static_cast<int>(feature.shape.size()),
                      .picture = feature.kind == Kind::kImage});
  }
  return parquet::Writer(std::move(fields), {});
}

void WriteDataFile(const std::string& old, const std::string& temporary, const DataRows& rows,
                   parquet::Writer& writer) {
  FileDescriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) throw FileError("cannot create", temporary);
  CopyBeginning(old, writer.size(), file.get(), temporary);
  std::map<std::string, parquet::Values> values;
  bool pictures = false;
  for (const Feature& feature : rows.info.features) {
    pictures = pictures || feature.kind == Kind::kImage;
    if (!feature.IsPicture()) values[feature.name] = ValuesOf(rows, feature);
  }
  for (int64_t first = 0, last = 0; first < rows.episode.frames; first = last) {
    GroupPictures group;
    last = pictures ? group.Fill(rows, first) : rows.episode.frames;
    std::vector<LeafValues> leaves;
    for (const Feature& feature : rows.info.features) {
      if (feature.kind == Kind::kImage) group.AddLeaves(feature, leaves);
      if (!feature.IsPicture()) {
        leaves.push_back(Slice(values[feature.name], feature, first, last));
      }
    }
    WriteAll(file.get(), writer.AddRowGroup(last - first, leaves), temporary);
  }
  WriteDurably(file.get(), writer.Footer(), temporary);
  if (file.Close() != 0) throw FileError("cannot write", temporary);
}

void MakeFolders(const std::string& path) {
  if (path.empty() || fs::is_directory(path)) return;
  const std::string parent = fs::path(path).parent_path();
  MakeFolders(parent);
  std::error_code code;
  fs::create_directory(path, code);
  if (code) throw BadInput(path + ": cannot create the folder: " + code.message());
  const FileDescriptor folder(
      open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) fsync(folder.get());
}

Statistics EpisodeStatistics(const DataRows& rows) {
  Statistics statistics;
  for (const Feature& feature : rows.info.features) {
    if (feature.IsPicture()) {
      statistics[feature.name] = rows.episode.picture_statistics.at(feature.name);
    } else if (feature.kind != Kind::kText) {
      parquet::Values values = ValuesOf(rows, feature);
      if (values.numbers.empty()) values.numbers.assign(values.ints.begin(), values.ints.end());
      // what is stored in single precision is checked and summed as it is stored
      if (feature.kind == Kind::kFloat) {
        for (double& value : values.numbers) value = static_cast<float>(value);
      }
      CheckFinite(values, rows, feature);
      statistics[feature.name] = Summarise(values.numbers, feature.Elements());
    }
  }
  return statistics;
}

}  // namespace mjp::datasets

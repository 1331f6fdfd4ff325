#ifndef DATASETS_FORMAT_INFO_H_
#define DATASETS_FORMAT_INFO_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

// meta/info.json of a LeRobotDataset.

namespace mjp::datasets {

enum class Kind { kBool, kInteger, kFloat, kDouble, kText, kImage, kVideo };

// What each frame has: a value, an array of them, or a picture.
struct Feature {
  std::string name;
  std::string dtype;           // LeRobot's word: "float32", "video"
  Kind kind = Kind::kFloat;    // what that means
  std::vector<int64_t> shape;  // (1) of a scalar; of pictures (height, width, channels)
  Json names;                  // of the elements: anything, as LeRobot leaves it
  Json details;                // a video's "info", or null
  Json look;                   // how its pictures were drawn (docs/CHECKPOINTS.md), or null

  bool IsPicture() const { return kind == Kind::kImage || kind == Kind::kVideo; }
  bool IsNumber() const { return !IsPicture() && kind != Kind::kText; }
  // The least and the most that a whole number or truth value can be; (0, 0) of other kinds.
  std::pair<int64_t, int64_t> Range() const;
  // Product of the shape.
  int64_t Elements() const;
  // Rows and columns of a picture, whose shape some write with the channels first.
  int Height() const;
  int Width() const;
};

// A feature of `dtype`. Throws Error naming it where `dtype` is not known.
Feature MakeFeature(std::string name, const std::string& dtype, std::vector<int64_t> shape,
                    Json names = nullptr);

// The five features that every data set has: timestamp, frame_index, episode_index, index,
// task_index.
std::vector<Feature> DefaultFeatures();
bool IsDefaultFeature(const std::string& name);

struct Info {
  std::string version;  // "v3.0"
  int fps = 0;
  std::vector<Feature> features;
  int64_t episodes = 0, frames = 0, tasks = 0;
  int64_t chunk_size = 1000;  // files per folder
  std::string data_path = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet";
  std::string video_path = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4";
  std::string robot_type;
  Json read;  // info.json as it was read, or null

  // The feature of a name, or null.
  const Feature* Find(const std::string& name) const;
};

// Reads info.json of version 3.0, or 2.0 and 2.1, whose totals and paths are the same but for their
// placeholders. Throws Error naming file and key.
Info ReadInfo(const std::string& path);

// The text of an info.json of version 3.0: what was read, `splits` and keys of others among it,
// with what `info` says now. The split "train" stays that of all episodes where it was.
std::string InfoText(const Info& info);

// What the placeholders of a path stand for.
struct PathFields {
  std::string video_key;
  int64_t chunk = 0, file = 0, episode = 0;
};

// Expands {chunk_index:03d}, {file_index:03d}, {video_key}, and version 2's {episode_chunk:03d},
// {episode_index:06d}. Throws Error naming `where` for other placeholders and for paths that leave
// the data set.
std::string ExpandPath(const std::string& pattern, const PathFields& fields,
                       const std::string& where);

}  // namespace mjp::datasets

#endif  // DATASETS_FORMAT_INFO_H_

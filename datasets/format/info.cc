#include "datasets/format/info.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/key_reader.h"

namespace mjp::datasets {
namespace {

constexpr int kMostFps = 100000;
constexpr int kMost = 2000000000;  // episodes, frames
constexpr int64_t kMostElements = 1 << 28;
constexpr size_t kMostFeatures = 4000;

struct WholeType {
  const char* dtype;
  Kind kind;
  int64_t least, most;
};

template <class T>
constexpr WholeType Integers(const char* dtype) {
  return {dtype, Kind::kInteger, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

constexpr WholeType kWholeTypes[] = {{"bool", Kind::kBool, 0, 1},  Integers<int64_t>("int64"),
                                     Integers<int32_t>("int32"),   Integers<int16_t>("int16"),
                                     Integers<int8_t>("int8"),     Integers<uint8_t>("uint8"),
                                     Integers<uint16_t>("uint16"), Integers<uint32_t>("uint32")};

Kind KindOf(const std::string& name, const std::string& dtype) {
  if (dtype == "float32") return Kind::kFloat;
  if (dtype == "float64") return Kind::kDouble;
  if (dtype == "string") return Kind::kText;
  if (dtype == "image") return Kind::kImage;
  if (dtype == "video") return Kind::kVideo;
  for (const WholeType& type : kWholeTypes) {
    if (dtype == type.dtype) return type.kind;
  }
  throw Unsupported("feature \"" + name + "\" has the dtype \"" + dtype +
                    "\"; known are bool, integers, float32, float64, string, image and video");
}

std::vector<int64_t> ReadShape(KeyReader& keys) {
  const std::vector<int> shape = keys.Ints("shape", 1, 5, 1, kMost);
  int64_t elements = 1;
  for (const int extent : shape) {
    elements *= extent;
    if (elements > kMostElements) throw keys.Bad("shape", "has too many elements");
  }
  return {shape.begin(), shape.end()};
}

Feature ReadFeature(const std::string& name, const Json& object, const std::string& where) {
  KeyReader keys(object, where + ": \"features\": \"" + name + "\"");
  if (name.empty() || name.find('/') != std::string::npos) {
    throw keys.Bad("name", "is empty or has a '/', which LeRobot refuses");
  }
  try {
    const Json* names = keys.Find("names");
    Feature feature =
        MakeFeature(name, keys.Text("dtype"), ReadShape(keys), names ? *names : Json());
    const Json* details = keys.Find("info");
    if (details != nullptr && details->is_object()) feature.details = *details;
    if (const Json* look = keys.Find("look")) feature.look = *look;
    if (feature.IsPicture() && (feature.shape.size() != 3 || feature.Height() < 1)) {
      throw BadInput("a picture's shape is [height, width, 3]");
    }
    if (feature.details.is_object() && feature.details.value("is_depth_map", Json(false)) == true) {
      throw Unsupported("is a depth map, which is not read here");
    }
    return feature;
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.starts_with(where)) throw;
    throw BadInput(where + ": \"" + name + "\": " + text);
  }
}

// Frames per second: whole, also where a tool wrote 10.0.
int ReadFps(KeyReader& keys) {
  const double fps = keys.Number("fps", 1, kMostFps);
  if (fps == std::floor(fps)) return static_cast<int>(fps);
  throw keys.Bad("fps", "is " + Json(fps).dump() + ", which is not whole");
}

Json FeatureJson(const Feature& feature) {
  Json json = {{"dtype", feature.dtype}, {"shape", feature.shape}, {"names", feature.names}};
  if (feature.details.is_object()) json["info"] = feature.details;
  if (!feature.look.is_null()) json["look"] = feature.look;
  return json;
}

// The number of a placeholder such as "chunk_index:03d".
std::string Expanded(const std::string& placeholder, const PathFields& fields, bool& known) {
  const size_t colon = placeholder.find(':');
  const std::string name = placeholder.substr(0, colon);
  if (name == "video_key" && colon == std::string::npos) return fields.video_key;
  int64_t number = fields.episode;
  if (name == "chunk_index" || name == "episode_chunk") {
    number = fields.chunk;
  } else if (name == "file_index") {
    number = fields.file;
  } else if (name != "episode_index") {
    known = false;
  }
  size_t width = 0;
  if (colon != std::string::npos) {
    const std::string format = placeholder.substr(colon + 1);
    known = known && format.size() == 3 && format[0] == '0' && format[1] >= '1' &&
            format[1] <= '9' && format[2] == 'd';
    if (known) width = static_cast<size_t>(format[1] - '0');
  }
  std::string digits = std::to_string(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

}  // namespace

std::pair<int64_t, int64_t> Feature::Range() const {
  for (const WholeType& type : kWholeTypes) {
    if (dtype == type.dtype) return {type.least, type.most};
  }
  return {0, 0};
}

int64_t Feature::Elements() const {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  return elements;
}

int Feature::Height() const {
  const bool channels_first = shape[0] == 3 && shape[2] != 3;
  return shape.size() != 3 ? 0 : static_cast<int>(shape[channels_first ? 1 : 0]);
}

int Feature::Width() const {
  const bool channels_first = shape[0] == 3 && shape[2] != 3;
  return shape.size() != 3 ? 0 : static_cast<int>(shape[channels_first ? 2 : 1]);
}

Feature MakeFeature(std::string name, const std::string& dtype, std::vector<int64_t> shape,
                    Json names) {
  Feature feature;
  feature.kind = KindOf(name, dtype);
  feature.name = std::move(name);
  feature.dtype = dtype;
  feature.shape = std::move(shape);
  feature.names = std::move(names);
  return feature;
}

std::vector<Feature> DefaultFeatures() {
  std::vector<Feature> features = {MakeFeature("timestamp", "float32", {1})};
  for (const char* name : {"frame_index", "episode_index", "index", "task_index"}) {
    features.push_back(MakeFeature(name, "int64", {1}));
  }
  return features;
}

bool IsDefaultFeature(const std::string& name) {
  for (const Feature& feature : DefaultFeatures()) {
    if (feature.name == name) return true;
  }
  return false;
}

const Feature* Info::Find(const std::string& name) const {
  for (const Feature& feature : features) {
    if (feature.name == name) return &feature;
  }
  return nullptr;
}

Info ReadInfo(const std::string& path) {
  const Json json = ReadJson(path, {.bytes = size_t{16} << 20, .depth = 16});
  KeyReader keys(json, path);
  Info info;
  info.version = keys.Text("codebase_version");
  if (info.version != "v3.0" && info.version != "v2.1" && info.version != "v2.0") {
    throw keys.Bad("codebase_version", "is " + info.version +
                                           "; v3.0 is read, and v2.1 and v2.0 "
                                           "by mjpolicy convert");
  }
  info.fps = ReadFps(keys);
  const Json& features = keys.Required("features");
  if (!features.is_object() || features.size() > kMostFeatures) {
    throw keys.Bad("features", "is not an object of features");
  }
  for (const auto& [name, object] : features.items()) {
    info.features.push_back(ReadFeature(name, object, path));
  }
  for (const Feature& feature : DefaultFeatures()) {
    const Feature* found = info.Find(feature.name);
    const bool whole = feature.kind == Kind::kInteger;
    if (found == nullptr || found->Elements() != 1 ||
        (found->kind != feature.kind && (whole || found->kind != Kind::kDouble))) {
      throw keys.Bad("features", "has no \"" + feature.name + "\" of one " +
                                     (whole ? "integer" : "float32") + ", which each data set has");
    }
  }
  info.episodes = keys.Int("total_episodes", 0, kMost);
  info.frames = keys.Int("total_frames", 0, kMost);
  info.tasks = keys.Int("total_tasks", 0, kMost);
  info.chunk_size = keys.Int("chunks_size", 1, kMost, 1000);
  info.data_path = keys.Text("data_path", info.data_path);
  info.video_path = keys.Text("video_path", info.video_path);
  info.robot_type = keys.Text("robot_type", "");
  info.read = json;
  return info;
}

std::string InfoText(const Info& info) {
  Json json = info.read.is_object() ? info.read : Json::object();
  const Json read_features = json.value("features", Json::object());
  Json features = Json::object();
  bool videos = false;
  for (const Feature& feature : info.features) {
    Json& entry = features[feature.name] = read_features.value(feature.name, Json::object());
    entry.update(FeatureJson(feature));
    videos = videos || feature.kind == Kind::kVideo;
  }
  const auto all = [](int64_t episodes) { return "0:" + std::to_string(episodes); };
  Json splits = json.value("splits", Json::object());
  if (!splits.is_object()) splits = Json::object();
  if (splits.empty() ||
      splits.value("train", Json()) == all(json.value("total_episodes", int64_t{0}))) {
    splits["train"] = all(info.episodes);
  }
  json.update({{"codebase_version", "v3.0"},
               {"fps", info.fps},
               {"features", features},
               {"total_episodes", info.episodes},
               {"total_frames", info.frames},
               {"total_tasks", info.tasks},
               {"chunks_size", info.chunk_size}});
  json.emplace("data_files_size_in_mb", 100);
  json.emplace("video_files_size_in_mb", 200);
  json["data_path"] = info.data_path;
  if (videos || !json.contains("video_path")) {
    json["video_path"] = videos ? Json(info.video_path) : Json();
  }
  json["robot_type"] = info.robot_type.empty() ? Json() : Json(info.robot_type);
  json["splits"] = splits;
  return json.dump(4) + "\n";
}

std::string ExpandPath(const std::string& pattern, const PathFields& fields,
                       const std::string& where) {
  std::string path;
  bool known = true;
  for (size_t at = 0; at < pattern.size();) {
    const size_t close = pattern[at] == '{' ? pattern.find('}', at) : std::string::npos;
    if (close == std::string::npos) {
      known = known && pattern[at] != '{' && pattern[at] != '}';
      path += pattern[at++];
      continue;
    }
    path += Expanded(pattern.substr(at + 1, close - at - 1), fields, known);
    at = close + 1;
  }
  const std::filesystem::path parts(path);
  for (const auto& part : parts) known = known && part != "..";
  if (!known || path.empty() || parts.is_absolute()) {
    throw BadInput(where + ": the path \"" + pattern +
                   "\" leaves the data set or has a placeholder that is not known");
  }
  return path;
}

}  // namespace mjp::datasets

#include "datasets/convert/array_source.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "datasets/dataset.h"
#include "datasets/format/whole_numbers.h"
#include "datasets/recording/writer.h"

namespace mjp::datasets {
namespace {

constexpr int64_t kFramesAtOnce = 16;

bool IsPicture(const SourceArray& array) {
  return array.shape.size() == 3 && array.shape[2] == 3 && array.shape[0] > 3;
}

// The last part of a name such as "observations/images/top".
std::string LastPart(const std::string& name) { return name.substr(name.rfind('/') + 1); }

// What LeRobot calls an array.
std::string FeatureName(const SourceArray& array) {
  const std::string name = LastPart(array.name);
  if (name == "action" || name == "actions") return "action";
  if (name == "rewards" || name == "reward") return "next.reward";
  if (name == "dones" || name == "done") return "next.done";
  if (name == "img") return "observation.image";
  if (name == "keypoint") return "observation.environment_state";
  return (IsPicture(array) ? "observation.images." : "observation.") + name;
}

// Which arrays make a feature.
struct Plan {
  Info info;
  std::vector<std::vector<SourceArray>> parts;  // of each feature
};

Plan MakePlan(const ArraySource& source, const ConvertOptions& options) {
  Plan plan;
  plan.info.fps = options.fps;
  const std::vector<std::string> state =
      options.state.empty() ? source.DefaultState() : options.state;
  std::vector<SourceArray> state_parts;
  int64_t state_size = 0;
  for (const std::string& name : state) {
    for (const SourceArray& array : source.arrays()) {
      if (LastPart(array.name) != name || array.shape.size() > 1) continue;
      state_parts.push_back(array);
      state_size += array.shape.empty() ? 1 : array.shape[0];
    }
  }
  if (state_parts.size() != state.size()) {
    std::string known;
    for (const SourceArray& array : source.arrays()) known += " " + LastPart(array.name);
    throw Error(ExitCode::kUsage,
                options.source + ": not all of --state are rows of numbers; its arrays:" + known);
  }
  if (!state.empty()) {
    plan.info.features.push_back(MakeFeature("observation.state", "float32", {state_size}));
    plan.parts.push_back(state_parts);
  }
  for (const SourceArray& array : source.arrays()) {
    if (std::count(state.begin(), state.end(), LastPart(array.name)) > 0) continue;
    std::string dtype = array.dtype;
    if (IsPicture(array)) dtype = options.video ? "video" : "image";
    Json names = IsPicture(array) ? Json::array({"height", "width", "channels"}) : Json();
    const std::vector<int64_t> shape = array.shape.empty() ? std::vector<int64_t>{1} : array.shape;
    const std::string name = FeatureName(array);
    if (name == "next.done") dtype = "bool";
    if (dtype == "float64") dtype = "float32";  // as LeRobot's own converters have it
    if (plan.info.Find(name) != nullptr) {
      throw Unsupported(options.source + ": two arrays would become \"" + name + "\"");
    }
    plan.info.features.push_back(MakeFeature(name, dtype, shape, std::move(names)));
    plan.parts.push_back({array});
  }
  return plan;
}

Picture ToPicture(const double* values, const SourceArray& array, const std::string& where) {
  Picture picture{static_cast<int>(array.shape[0]), static_cast<int>(array.shape[1]), {}};
  picture.rgb.resize(picture.Bytes());
  for (size_t i = 0; i < picture.rgb.size(); ++i) {
    // Diffusion Policy stores pictures as float32 with whole values
    if (!(values[i] >= 0 && values[i] <= 255) || values[i] != std::nearbyint(values[i])) {
      throw BadInput(where + ": \"" + array.name + "\" has the value " + std::to_string(values[i]) +
                     "; a picture has whole values from 0 to 255");
    }
    picture.rgb[i] = static_cast<uint8_t>(values[i]);
  }
  return picture;
}

size_t Elements(const SourceArray& array) {
  size_t elements = 1;
  for (const int64_t extent : array.shape) elements *= static_cast<size_t>(extent);
  return elements;
}

// Gives an array of an episode to `work`, kFramesAtOnce frames at a time, each time with the number
// of the first: an episode need not fit into memory.
template <class Work>
void ReadInParts(ArraySource& source, int64_t episode, const SourceArray& array, const Work& work) {
  const int64_t length = source.Length(episode);
  for (int64_t first = 0; first < length; first += kFramesAtOnce)
    work(first, source.Read(episode, array, first, std::min(kFramesAtOnce, length - first)));
}

// Gives an episode's frames to the writer.
void WriteEpisode(ArraySource& source, int64_t episode, const Plan& plan,
                  const ConvertOptions& options, DatasetWriter& writer) {
  const int64_t length = source.Length(episode);
  const std::string where = options.source + ": episode " + std::to_string(episode);
  for (int64_t first = 0; first < length; first += kFramesAtOnce) {
    const int64_t count = std::min(kFramesAtOnce, length - first);
    std::vector<Frame> frames(static_cast<size_t>(count));
    for (Frame& frame : frames) frame.task = options.task;
    for (size_t feature = 0; feature < plan.parts.size(); ++feature) {
      const std::string& name = plan.info.features[feature].name;
      for (const SourceArray& array : plan.parts[feature]) {
        const std::vector<double> values = source.Read(episode, array, first, count);
        const size_t elements = Elements(array);
        for (size_t i = 0; i < frames.size(); ++i) {
          const double* begin = values.data() + i * elements;
          if (plan.info.features[feature].IsPicture()) {
            frames[i].pictures[name] = ToPicture(begin, array, where);
          } else {
            std::vector<double>& numbers = frames[i].numbers[name];
            numbers.insert(numbers.end(), begin, begin + elements);
          }
        }
      }
    }
    for (size_t i = 0; i < frames.size(); ++i) {
      try {
        writer.AddFrame(frames[i]);
      } catch (const Error& error) {
        const int64_t frame = first + static_cast<int64_t>(i);
        throw Error(error.code(), where + ", frame " + std::to_string(frame) + ": " + error.what());
      }
    }
  }
  writer.EndEpisode();
}

// Throws Error where an array that stays integers has one that is not kept exactly. That is looked
// for in all of them before there is a data set, to which an array of another type does not fit.
// Throws StoppedComparison where options.progress, asked after each episode, ends it.
void CheckIntegers(ArraySource& source, const Plan& plan, const ConvertOptions& options) {
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    const Feature& feature = plan.info.features[i];
    if (feature.dtype != "int64") continue;
    const SourceArray& array = plan.parts[i].front();
    for (int64_t episode = 0; episode < source.episodes(); ++episode) {
      ReadInParts(source, episode, array, [&](int64_t first, const std::vector<double>& values) {
        const auto beyond = std::ranges::find_if(
            values, [](double value) { return std::abs(value) > static_cast<double>(kMostExact); });
        if (beyond == values.end()) return;
        const size_t frame = static_cast<size_t>(first) +
                             static_cast<size_t>(beyond - values.begin()) / Elements(array);
        throw BadInput(options.source + ": episode " + std::to_string(episode) + ", frame " +
                       std::to_string(frame) + ": \"" + array.name +
                       "\" has an integer beyond 2^53 - 1, which is not kept exactly; write it as "
                       "float64 or smaller integers in a copy, or take the array out of it");
      });
      TellCompared(options, source.layout(), 0, source.episodes());
    }
  }
}

// The numbers of a frame as a data set stores them.
double Stored(double value, const Feature& feature) {
  return feature.kind == Kind::kFloat ? static_cast<double>(static_cast<float>(value)) : value;
}

// Whether statistics of pictures that an episode has are those of the source's. They were computed
// of the pictures before they were encoded.
bool SameStatistics(ArraySource& source, const SourceArray& array, int64_t episode,
                    const std::string& where, const FeatureStatistics& have) {
  PictureStatistics pictures;
  for (const int64_t frame : SampledFrames(source.Length(episode))) {
    const std::vector<double> values = source.Read(episode, array, frame, 1);
    pictures.Add(ToPicture(values.data(), array, where));
  }
  const FeatureStatistics now = pictures.Result();
  bool same = have.count == now.count;
  for (size_t i = 0; i < kStatistics.size(); ++i) {
    same = same && std::ranges::equal(*have.Rows()[i], *now.Rows()[i], [](double a, double b) {
             return std::abs(a - b) < 1e-9;  // another build may add in another order
           });
  }
  return same;
}

// Throws Error if an episode that the destination has is not what the source holds now. Of images
// the first is looked at, of videos the statistics.
void CheckBegun(ArraySource& source, const Plan& plan, const ConvertOptions& options,
                Dataset& begun, size_t episode) {
  const Episode& of = begun.episodes()[episode];
  if (of.index >= source.episodes() || source.Length(of.index) != of.length)
    throw OtherSource(options, of.index, "its length");
  if (of.tasks != std::vector<std::string>{options.task})
    throw OtherSource(options, of.index, "its task");
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    const Feature& feature = plan.info.features[i];
    const std::string what = "\"" + feature.name + "\"";
    const SourceArray& array = plan.parts[i].front();
    if (feature.kind == Kind::kVideo) {
      if (!SameStatistics(source, array, of.index, options.source, of.statistics.at(feature.name)))
        throw OtherSource(options, of.index, what);
      continue;
    }
    if (feature.kind == Kind::kImage) {
      const std::vector<double> first = source.Read(of.index, array, 0, 1);
      if (ToPicture(first.data(), array, options.source).rgb !=
          begun.ReadPicture(episode, feature, 0).rgb)
        throw OtherSource(options, of.index, what);
      continue;
    }
    const parquet::Column column = begun.Read(episode, feature);
    size_t before = 0;  // elements of a frame in the parts before
    for (const SourceArray& part : plan.parts[i]) {
      const size_t elements = Elements(part), all = static_cast<size_t>(feature.Elements());
      ReadInParts(source, of.index, part, [&](int64_t first, const std::vector<double>& values) {
        for (size_t k = 0; k < values.size(); ++k) {
          const size_t frame = static_cast<size_t>(first) + k / elements;
          const size_t at = frame * all + before + k % elements;
          const double stored = column.values.numbers.empty()
                                    ? static_cast<double>(column.values.ints.at(at))
                                    : column.values.numbers.at(at);
          if (stored != Stored(values[k], feature)) throw OtherSource(options, of.index, what);
        }
      });
      before += elements;
    }
  }
  TellCompared(options, source.layout(), of.index + 1, source.episodes());
}

}  // namespace

ConvertResult ConvertArrays(ArraySource& source, const ConvertOptions& options) {
  const Plan plan = MakePlan(source, options);
  CheckIntegers(source, plan, options);
  ConvertResult result{.layout = source.layout(), .episodes = 0, .frames = 0, .whole = true};
  size_t checked = 0;
  const auto check = [&](Dataset& begun) {
    for (; checked < begun.episodes().size(); ++checked)
      CheckBegun(source, plan, options, begun, checked);
  };
  DatasetWriter writer(options.destination, plan.info, check);
  writer.Finish();
  {
    Dataset begun(options.destination);
    check(begun);  // what a killed conversion had still to encode
  }
  for (int64_t episode = writer.episodes(); episode < source.episodes(); ++episode) {
    WriteEpisode(source, episode, plan, options, writer);
    // one episode may be encoded while the next is read
    if (options.progress && !options.progress(writer.saved(), source.episodes())) {
      result.whole = false;
      break;
    }
  }
  writer.Finish();
  const Dataset dataset(options.destination);
  result.episodes = dataset.info().episodes;
  result.frames = dataset.info().frames;
  return result;
}

}  // namespace mjp::datasets

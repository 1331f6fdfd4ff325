#include "policy/inspect.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/json.h"
#include "base/text_stream.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/normalization/statistics.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/inspect_gpu.h"

namespace mjp {
namespace {

// "28,462,498"
std::string Grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(at, 1, ',');
  return text;
}

template <class Range>
std::string Joined(const Range& range, const char* separator) {
  TextWriter out;
  for (const auto& element : range) out << (out.tellp() > 0 ? separator : "") << element;
  return out.str();
}

std::string Row(const std::string& label, const std::string& text) {
  char line[64];
  std::snprintf(line, sizeof line, "%-14s", label.c_str());
  return line + text + "\n";
}

std::string FeatureRow(const std::string& name, const std::string& shape,
                       const FeatureStats& stats) {
  char line[160];
  std::snprintf(line, sizeof line, "  %-32s %-12s %s\n", name.c_str(), shape.c_str(),
                ModeName(stats.mode).c_str());
  std::string text = line;
  const auto names = StatNames(stats.mode);
  for (const auto& [stat, values] :
       {std::pair{names.first, stats.first}, {names.second, stats.second}}) {
    if (values.empty()) continue;
    std::snprintf(line, sizeof line, "    %-5s", stat.c_str());
    text += line + Joined(values, " ") + "\n";
  }
  return text;
}

std::vector<TensorEntry> SortedTensors(const std::string& directory) {
  const SafetensorsFile file = SafetensorsFile::ReadHeader(directory + "/model.safetensors");
  std::vector<TensorEntry> tensors = file.tensors();
  std::ranges::sort(tensors, {}, &TensorEntry::name);
  return tensors;
}

std::string TensorTable(const std::vector<TensorEntry>& tensors) {
  size_t width = 0;
  for (const TensorEntry& tensor : tensors) width = std::max(width, tensor.name.size());
  TextWriter out;
  for (const TensorEntry& tensor : tensors) {
    out << "  " << tensor.name << std::string(width + 2 - tensor.name.size(), ' ') << tensor.dtype
        << " (" << Joined(tensor.shape, ", ") << ")\n";
  }
  return out.str();
}

std::string NumberText(double number) {
  TextWriter text;
  text << number;
  return text.str();
}

std::string ReplanningText(const PolicyConfig& config) {
  const int every = config.replan_every;
  const std::string often = every == 1
                                ? "a decision every control step"
                                : "a decision every " + std::to_string(every) + " control steps";
  if (config.replan_beyond == 0) return often;
  return often + ", taken beyond " + NumberText(config.replan_beyond) + " from the last";
}

std::string Table(const Checkpoint& checkpoint, const std::vector<TensorEntry>& tensors,
                  bool all_tensors) {
  const PolicyConfig& config = checkpoint.config;
  TextWriter out;
  out << Row("checkpoint", checkpoint.directory) << Row("type", config.type)
      << Row("sha256", checkpoint.sha256) << Row("parameters", Grouped(checkpoint.parameter_count))
      << Row("inputs", std::to_string(config.n_obs_steps) + " observation steps of");
  for (size_t i = 0; i < config.cameras.size(); ++i) {
    const CameraFeature& camera = config.cameras[i];
    out << FeatureRow(camera.name,
                      Joined(std::vector{camera.channels, camera.height, camera.width}, "x"),
                      checkpoint.stats.cameras[i]);
  }
  out << FeatureRow(kStateFeature, std::to_string(config.state_dim), checkpoint.stats.state);
  if (config.environment_dim > 0) {
    out << FeatureRow(kEnvironmentFeature, std::to_string(config.environment_dim),
                      checkpoint.stats.environment);
  }
  out << Row("outputs", "horizon " + std::to_string(config.horizon) + ", executes " +
                            std::to_string(config.n_action_steps) + " from row " +
                            std::to_string(config.FirstAction()) + ", of")
      << FeatureRow(kActionFeature, std::to_string(config.action_dim), checkpoint.stats.action);
  if (config.replan_every > 0) out << Row("replanning", ReplanningText(config));
  const float temperature = checkpoint.network->sampler().temperature;
  if (temperature != 1)
    out << Row("temperature", NumberText(temperature) + " of the noise it learnt from");
  for (const auto& [label, text] : checkpoint.network->Describe()) out << Row(label, text);
  out << Row("tensors",
             std::to_string(tensors.size()) + (all_tensors ? "" : " (shown by --tensors)"));
  if (all_tensors) out << TensorTable(tensors);
  return out.str();
}

Json StatsJson(const FeatureStats& stats) {
  Json json = {{"mode", ModeName(stats.mode)}};
  const auto values = [&](const std::string& name, const std::vector<float>& numbers) {
    if (numbers.empty()) return;
    json[name] = Json::array();
    for (const float number : numbers) json[name].push_back(ShortestDouble(number));
  };
  const auto names = StatNames(stats.mode);
  values(names.first, stats.first);
  values(names.second, stats.second);
  return json;
}

Json ToJson(const Checkpoint& checkpoint, const std::vector<TensorEntry>& tensors,
            bool all_tensors) {
  const NormalizerStats& stats = checkpoint.stats;
  Json json = {{"checkpoint", checkpoint.directory},
               {"sha256", checkpoint.sha256},
               {"files", checkpoint.files},
               {"parameters", checkpoint.parameter_count},
               {"config", ConfigToJson(checkpoint)}};
  Json& ranges = json["statistics"] = Json::object();
  for (size_t i = 0; i < stats.cameras.size(); ++i) {
    ranges[checkpoint.config.cameras[i].name] = StatsJson(stats.cameras[i]);
  }
  ranges[kStateFeature] = StatsJson(stats.state);
  if (checkpoint.config.environment_dim > 0) {
    ranges[kEnvironmentFeature] = StatsJson(stats.environment);
  }
  ranges[kActionFeature] = StatsJson(stats.action);
  const PictureLooks looks = checkpoint.network->trained_looks();
  if (!looks.empty()) json["look"] = LooksToJson(looks);
  json["tensor_count"] = tensors.size();
  if (all_tensors) {
    json["tensors"] = Json::array();
    for (const TensorEntry& tensor : tensors) {
      json["tensors"].push_back(
          {{"name", tensor.name}, {"type", tensor.dtype}, {"shape", tensor.shape}});
    }
  }
  return json;
}

}  // namespace

std::string InspectCheckpoint(const std::string& directory, const InspectOptions& options) {
  const auto checkpoint = LoadCheckpoint(directory);
  const auto tensors = SortedTensors(directory);
  if (!options.json)
    return Table(*checkpoint, tensors, options.tensors) + ExecutionTable(*checkpoint, options.gpu);
  Json json = ToJson(*checkpoint, tensors, options.tensors);
  if (!options.gpu.empty()) json["execution"] = ExecutionJson(*checkpoint, options.gpu);
  return JsonText(json, 1) + "\n";
}

}  // namespace mjp

#include "plugin/model/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/command_line/duration.h"
#include "base/error.h"
#include "base/text_stream.h"
#include "plugin/state.h"
#include "policy/option_names.h"
#include "policy/prefix/event_replanning.h"

namespace mjp {
namespace {

std::map<std::string, std::string>& Instead() {
  static std::map<std::string, std::string> values;
  return values;
}

// The attributes of one instance as text. MuJoCo refuses undeclared names; values are free text.
class Attributes {
 public:
  Attributes(const mjModel* model, int instance) : model_(model), instance_(instance) {
    CheckLayout();
  }

  std::string Text(const char* name) const {
    const auto instead = Instead().find(name);
    if (instead != Instead().end()) return instead->second;
    const char* text = mj_getPluginConfig(model_, instance_, name);
    return text ? text : "";
  }

  std::vector<std::string> Words(const char* name) const {
    TextReader stream(Text(name));
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
  }

  // a finite number in [low, high] and nothing else
  double Number(const char* name, double fallback, double low, double high) const {
    const std::string text = Text(name);
    return text.empty() ? fallback : Parse<double>(name, text, low, high, "a number");
  }

  // seconds: a number counts `unit` seconds, one with a unit is a time; in [low, high] units
  double Time(const char* name, double unit, double fallback, double high, double low = 0) const {
    const std::string text = Text(name);
    if (text.empty()) return fallback;
    const auto seconds = ParseDuration(text, unit);
    if (seconds && *seconds >= low * unit && *seconds <= high * unit) return *seconds;
    TextWriter expected;
    expected << "a number from " << low << " to " << high << ", or a time such as 100ms or 2s";
    throw Refuse(name, text, expected.str());
  }

  uint64_t Integer(const char* name, uint64_t fallback, uint64_t low, uint64_t high) const {
    const std::string text = Text(name);
    return text.empty() ? fallback : Parse<uint64_t>(name, text, low, high, "a whole number");
  }

  // numbers of [low, high]; `fallback` where there are none
  std::vector<double> Numbers(const char* name, std::vector<double> fallback, double low,
                              double high, const char* kind) const {
    std::vector<double> numbers;
    for (const std::string& word : Words(name)) {
      numbers.push_back(Parse<double>(name, word, low, high, kind));
    }
    return numbers.empty() ? fallback : numbers;
  }

  // one or more positive numbers
  std::vector<double> Scales(const char* name) const {
    return Numbers(name, {1}, 1e-9, kMost, "positive numbers, each");
  }

  // Gains and offsets of `feature`. A gain may be called a scale where it is positive.
  LinearMap Map(const std::string& feature) const {
    const std::string gain = feature + "_gain", scale = feature + "_scale";
    const bool has_gain = !Text(gain.c_str()).empty();
    if (has_gain && !Text(scale.c_str()).empty()) {
      throw BadInput("attributes " + scale + " and " + gain + " say the same: give one of them");
    }
    LinearMap map;
    map.attribute = has_gain || feature == "action" ? gain : scale;
    map.gain = has_gain || feature == "action" ? Gains(gain.c_str()) : Scales(scale.c_str());
    map.offset = Numbers((feature + "_offset").c_str(), {0}, -kMost, kMost, "numbers, each");
    return map;
  }

  Error Refuse(const char* name, const std::string& text, const std::string& expected) const {
    return BadInput("attribute " + std::string(name) + " is \"" + text + "\": expected " +
                    expected);
  }

 private:
  // The engine saves plugins by number and attributes by place, so an .mjb file or a pickle from a
  // process that had loaded other plugins, or another version of this one, would be misread.
  void CheckLayout() const {
    const bool last = instance_ + 1 == model_->nplugin;
    const int begin = model_->plugin_attradr[instance_];
    const int end = last ? model_->npluginattr : model_->plugin_attradr[instance_ + 1];
    const auto values = std::count(model_->plugin_attr + begin, model_->plugin_attr + end, '\0');
    if (begin >= 0 && begin < end && values == std::ssize(kConfigAttributes)) return;
    throw BadInput(
        "the model was saved by a process with other plugins, or another version of this one: "
        "compile it from its XML in this process");
  }

  std::vector<double> Gains(const char* name) const {
    const std::vector<double> gains = Numbers(name, {1}, -kMost, kMost, "numbers, each");
    for (const double gain : gains) {
      if (gain == 0) throw Refuse(name, Text(name), "numbers that are not 0");
    }
    return gains;
  }

  template <typename T>
  T Parse(const char* name, const std::string& text, T low, T high, const char* kind) const {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    // a NaN fails both comparisons
    if (whole && value >= low && value <= high) return value;
    TextWriter expected;
    expected << kind << " from " << low << " to " << high;
    throw Refuse(name, text, expected.str());
  }

  static constexpr double kMost = 1e9;  // of a gain or an offset

  const mjModel* model_;
  int instance_;
};

std::vector<double> ParseClip(const Attributes& attributes) {
  constexpr double kMost = 1e12;
  const std::vector<double> clip =
      attributes.Numbers("action_clip", {}, -kMost, kMost, "numbers, each");
  bool right = clip.size() % 2 == 0;
  for (size_t i = 0; right && i < clip.size(); i += 2) right = clip[i] < clip[i + 1];
  if (right) return clip;
  throw attributes.Refuse("action_clip", attributes.Text("action_clip"),
                          "the lowest and the highest number, for all or for each");
}

std::vector<int> ParseIndices(const Attributes& attributes) {
  std::vector<int> indices;
  for (const double index : attributes.Numbers("action_index", {}, 0, 1e4, "whole numbers, each")) {
    if (index != std::floor(index)) {
      throw attributes.Refuse("action_index", attributes.Text("action_index"), "whole numbers");
    }
    indices.push_back(static_cast<int>(index));
  }
  return indices;
}

PolicyOptions ParsePolicyOptions(const Attributes& attributes) {
  PolicyOptions options;
  const std::string backend = attributes.Text("backend");
  if (!backend.empty()) options.backend = ParseBackend("attribute backend", backend);
  const std::string precision = attributes.Text("precision");
  if (!precision.empty()) options.precision = ParsePrecision("attribute precision", precision);
  const std::string sampler = attributes.Text("sampler");
  if (!sampler.empty()) options.sampler.kind = ParseSampler("attribute sampler", sampler);
  options.sampler.steps = static_cast<int>(attributes.Integer("steps", 0, 1, 10000));
  if (!attributes.Text("temperature").empty()) {
    options.sampler.temperature =
        static_cast<float>(attributes.Number("temperature", 1, 0, kMostTemperature));
  }
  options.sampler.hold_noise =
      static_cast<int>(attributes.Integer("hold_noise", 0, 0, kMostHeldDecisions));
  options.sampler.prefix = attributes.Integer("prefix", 0, 0, 1) != 0;
  options.sampler.warm_start = static_cast<int>(attributes.Integer("warm_start", 0, 0, 9999));
  options.threads = static_cast<int>(attributes.Integer("threads", 1, 1, 1024));
  options.self_check = attributes.Integer("self_check", 1, 0, 1) != 0;
  options.instruction = attributes.Text("instruction");
  const std::string parallel = attributes.Text("parallel");
  if (!parallel.empty()) ParseParallel("attribute parallel", parallel, options.sampler);
  return options;
}

}  // namespace

void SetAttributesInstead(std::map<std::string, std::string> values) {
  Instead() = std::move(values);
}

Config Config::FromModel(const mjModel* model, int instance) {
  const Attributes attributes(model, instance);
  Config config;
  config.checkpoint = attributes.Text("checkpoint");
  if (config.checkpoint.empty()) {
    throw BadInput("attribute checkpoint is missing: it names the directory of the policy");
  }
  config.cameras = attributes.Words("camera");
  config.state = attributes.Words("state");
  config.environment = attributes.Words("environment");
  config.actuators = attributes.Words("actuators");
  if (config.actuators.empty()) {
    throw BadInput("attribute actuators is missing: it names the actuators that the policy drives");
  }
  config.state_map = attributes.Map("state");
  config.environment_map = attributes.Map("environment");
  config.action_map = attributes.Map("action");
  config.action_scale = attributes.Scales("action_scale");
  config.action_clip = ParseClip(attributes);
  config.action_index = ParseIndices(attributes);
  config.period = attributes.Time("period", kSecond, config.period, 1e3, 1e-6);
  config.latency = attributes.Time("latency", kMillisecondInSeconds, 0, 1e6);
  config.async = attributes.Integer("async", 0, 0, 1) != 0;
  config.action_steps = static_cast<int>(attributes.Integer("action_steps", 0, 1, 10000));
  if (!attributes.Text("replan_beyond").empty()) {
    config.replan_beyond = attributes.Number("replan_beyond", 0, 0, kMostReplanBeyond);
  }
  config.replan_after = static_cast<int>(attributes.Integer("replan_after", 0, 1, 1000));
  config.seed = attributes.Integer("seed", 0, 0, kMaxSeed);
  config.policy = ParsePolicyOptions(attributes);
  const std::string renderer = attributes.Text("renderer");
  if (!renderer.empty()) config.renderer = renderer;
  config.trail = attributes.Text("trail");
  config.label = attributes.Text("label");
  config.record = attributes.Text("record");
  return config;
}

void Config::CheckTimestep(const mjModel* model) const {
  if (period >= model->opt.timestep) return;
  throw BadInput("attribute period is " + std::to_string(period) +
                 " s, shorter than the model's timestep of " + std::to_string(model->opt.timestep) +
                 " s");
}

}  // namespace mjp

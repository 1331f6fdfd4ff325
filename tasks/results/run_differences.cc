#include "tasks/results/run_differences.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/key_reader.h"
#include "tasks/task_names.h"

namespace mjp::app {
namespace {

constexpr size_t kShownDigits = 12;  // of a hash

// What people call a key of run.json.
std::string NameOf(const std::string& key) {
  static const std::map<std::string, std::string> kNames = {
      {"version", "the version of mjpolicy"},
      {"mujoco", "MuJoCo's version"},
      {"checkpoint_sha256", "the checkpoint's weights"},
      {"parallel_window", "--parallel (window)"},
      {"parallel_tolerance", "--parallel (tolerance)"},
      {"success_coverage", "--success"},
      {"backend", "the backend"},
      {"processor", "the kind of processor"}};
  static const char* const kOptions[] = {
      "task",          "episodes",     "seed",         "shard",         "max_steps",
      "sampler",       "steps",        "hold_noise",   "renderer",      "physics",
      "batch",         "latency",      "action_steps", "picture_noise", "brightness",
      "picture_shift", "action_noise", "push",         "instruction",   "prefix",
      "replan_beyond", "replan_after", "warm_start",   "temperature"};
  const auto found = kNames.find(key);
  if (found != kNames.end()) return found->second;
  if (std::ranges::find(kOptions, key) == std::end(kOptions)) return key;
  std::string option = "--" + key;
  std::ranges::replace(option, '_', '-');
  return option;
}

std::string ValueText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// What a run says: name -> value, in the order of the file.
struct Statement {
  std::vector<std::string> names;
  std::map<std::string, std::string> values;

  void Add(const std::string& name, const std::string& value) {
    names.push_back(name);
    values[name] = value;
  }
};

Json ParseRun(const std::string& text, const std::string& name) {
  Json run = ParseJson(text, name);
  if (!run.is_object()) throw BadInput(name + ": is not the run.json of an evaluation");
  if (!run.contains(kTaskKey)) run[kTaskKey] = kDefaultTask;
  return run;
}

Statement StatementOf(const Json& run, bool files) {
  Statement statement;
  for (const auto& [key, value] : run.items()) {
    // the hash of the weights is also that of a file
    if (key == (files ? "checkpoint_sha256" : kCheckpointFiles)) continue;
    if (key == kUnlikeTraining) continue;
    if (!value.is_object()) {
      statement.Add(NameOf(key), ValueText(value));
      continue;
    }
    for (const auto& [inner, inner_value] : value.items()) {
      if (key == kCheckpointFiles) {
        statement.Add("the checkpoint's " + inner, ValueText(inner_value).substr(0, kShownDigits));
      } else {
        statement.Add(NameOf(inner), ValueText(inner_value));
      }
    }
  }
  return statement;
}

}  // namespace

std::string TaskOf(const std::string& run, const std::string& file) {
  const Json json = ParseRun(run, file);
  return KeyReader(json, file).Text(kTaskKey);
}

std::vector<RunDifference> RunDifferences(const std::string& run_a, const std::string& name_a,
                                          const std::string& run_b, const std::string& name_b) {
  const Json json_a = ParseRun(run_a, name_a), json_b = ParseRun(run_b, name_b);
  const bool has_a = json_a.contains(kCheckpointFiles), has_b = json_b.contains(kCheckpointFiles);
  const Statement a = StatementOf(json_a, has_a && has_b), b = StatementOf(json_b, has_a && has_b);
  std::vector<RunDifference> differences;
  constexpr char kAbsent[] = "absent";
  for (const std::string& name : a.names) {
    const auto there = b.values.find(name);
    const std::string in_b = there == b.values.end() ? kAbsent : there->second;
    if (a.values.at(name) != in_b) differences.push_back({name, a.values.at(name), in_b});
  }
  for (const std::string& name : b.names) {
    if (!a.values.contains(name)) differences.push_back({name, kAbsent, b.values.at(name)});
  }
  if (has_a != has_b) {
    const auto text = [](bool has) {
      return has ? "by all of its files" : "by its weights alone (an earlier build)";
    };
    differences.push_back({"the checkpoint is known", text(has_a), text(has_b)});
  }
  return differences;
}

std::string WasAndIs(const std::vector<RunDifference>& differences) {
  std::string text;
  for (const RunDifference& each : differences) {
    text += (text.empty() ? "" : "; ") + each.what + " was " + each.in_a + ", is " + each.in_b;
  }
  return text;
}

bool KnowsWeightsAlone(const std::string& run, const std::string& name) {
  return !ParseRun(run, name).contains(kCheckpointFiles);
}

}  // namespace mjp::app

#include "tasks/results/episode.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/key_reader.h"

namespace mjp::app {
namespace {

const std::string kMax = "max_", kFinal = "final_";  // before the name of a measure

// The measures of an episode: each has both keys.
std::vector<TaskMeasure> ReadMeasures(const mjp::Json& json, mjp::KeyReader& keys) {
  std::vector<TaskMeasure> measures;
  for (const auto& [key, value] : json.items()) {
    if (!key.starts_with(kMax)) continue;
    const std::string name = key.substr(kMax.size());
    measures.push_back({name, keys.Number(key, 0, 1), keys.Number(kFinal + name, 0, 1)});
  }
  if (measures.empty()) throw keys.Bad(kMax + "...", "is missing: an episode has a measure");
  return measures;
}

}  // namespace

std::string ToJsonLine(const EpisodeResult& e) {
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(e.hash));
  nlohmann::ordered_json json = {
      {"episode", e.index},     {"seed", e.seed},        {"status", e.valid ? "ok" : "invalid"},
      {"success", e.success()}, {"score", e.max_reward}, {"sum_reward", e.sum_reward}};
  for (const TaskMeasure& measure : e.measures) {
    json[kMax + measure.name] = measure.max;
    json[kFinal + measure.name] = measure.final;
  }
  json["success_step"] = e.success_step;
  json["steps"] = e.steps;
  json["decisions"] = e.decisions;
  json["hash"] = hash;
  if (!e.valid) json["reason"] = e.reason;
  json["timing"] = {{"seconds", e.seconds}};
  if (e.smoothness) {
    json["smoothness"] = {{"jerk", e.smoothness->jerk}, {"border_jump", e.smoothness->border_jump}};
  }
  return JsonText(json);
}

EpisodeResult EpisodeFromJson(const std::string& line) {
  const std::string where = "episode line";
  const mjp::Json json = mjp::ParseJson(line, where);
  mjp::KeyReader keys(json, where);
  constexpr int kMost = std::numeric_limits<int>::max();
  constexpr double kLongest = 1e9;  // seconds
  EpisodeResult e;
  e.index = keys.Int("episode", 0, kMost);
  e.seed = keys.Uint32("seed");
  const std::string status = keys.Text("status");
  if (status != "ok" && status != "invalid") {
    throw keys.Bad("status", "is '" + status + "', expected ok or invalid");
  }
  e.valid = status == "ok";
  if (!e.valid) e.reason = keys.Text("reason");
  e.steps = keys.Int("steps", 0, kMost);
  e.max_reward = keys.Number("score", 0, 1);
  e.sum_reward = keys.Number("sum_reward", 0, e.steps);  // at most 1 a step
  e.measures = ReadMeasures(json, keys);
  e.success_step = keys.Int("success_step", -1, e.steps);
  e.decisions = keys.Int("decisions", 0, kMost);
  const std::string hash = keys.Text("hash");
  const char* end = hash.data() + hash.size();
  const auto [last, code] = std::from_chars(hash.data(), end, e.hash, 16);
  if (hash.size() != 16 || code != std::errc() || last != end) {
    throw keys.Bad("hash", "is not 16 hexadecimal digits");
  }
  e.seconds =
      mjp::KeyReader(keys.Required("timing"), where + ": timing").Number("seconds", 0, kLongest);
  if (keys.Has("smoothness")) {
    constexpr double kMostRough = std::numeric_limits<double>::max();
    mjp::KeyReader smoothness(keys.Required("smoothness"), where + ": smoothness");
    e.smoothness = Smoothness{smoothness.Number("jerk", 0, kMostRough),
                              smoothness.Number("border_jump", 0, kMostRough)};
  }
  if (keys.Bool("success") != e.success()) throw keys.Bad("success", "contradicts success_step");
  return e;
}

void StateHash::Add(double value) {
  unsigned char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  for (unsigned char byte : bytes) hash_ = (hash_ ^ byte) * 1099511628211ull;
}

}  // namespace mjp::app

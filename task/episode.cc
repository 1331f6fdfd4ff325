#include "task/episode.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "kernels/error.h"
#include "policy/json.h"

namespace pusht {

std::string ToJsonLine(const EpisodeResult& e) {
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(e.hash));
  nlohmann::ordered_json json = {{"episode", e.index},
                                 {"seed", e.seed},
                                 {"status", e.valid ? "ok" : "invalid"},
                                 {"success", e.success()},
                                 {"score", e.max_reward},
                                 {"sum_reward", e.sum_reward},
                                 {"max_coverage", e.max_coverage},
                                 {"final_coverage", e.final_coverage},
                                 {"success_step", e.success_step},
                                 {"steps", e.steps},
                                 {"decisions", e.decisions},
                                 {"hash", hash}};
  if (!e.valid) json["reason"] = e.reason;
  json["timing"] = {{"seconds", e.seconds}};
  return json.dump();
}

EpisodeResult EpisodeFromJson(const std::string& line) {
  const nlohmann::json json = dp::ParseJson(line, "episode line");
  try {
    EpisodeResult e;
    e.index = json.at("episode").get<int>();
    e.seed = json.at("seed").get<uint32_t>();
    const std::string status = json.at("status").get<std::string>();
    if (status != "ok" && status != "invalid") {
      throw dp::BadInput("episode line: status is '" + status + "', expected ok or invalid");
    }
    e.valid = status == "ok";
    if (!e.valid) e.reason = json.at("reason").get<std::string>();
    e.max_reward = json.at("score").get<double>();
    e.sum_reward = json.at("sum_reward").get<double>();
    e.max_coverage = json.at("max_coverage").get<double>();
    e.final_coverage = json.at("final_coverage").get<double>();
    e.success_step = json.at("success_step").get<int>();
    e.steps = json.at("steps").get<int>();
    e.decisions = json.at("decisions").get<int>();
    const std::string hash = json.at("hash").get<std::string>();
    size_t used = 0;
    e.hash = hash.size() == 16 ? std::stoull(hash, &used, 16) : 0;
    if (used != 16) throw dp::BadInput("episode line: hash is not 16 hexadecimal digits");
    e.seconds = json.at("timing").at("seconds").get<double>();
    if (json.at("success").get<bool>() != e.success()) {
      throw dp::BadInput("episode line: success contradicts success_step");
    }
    return e;
  } catch (const nlohmann::json::exception& error) {
    throw dp::BadInput(std::string("episode line: ") + error.what());
  } catch (const std::invalid_argument&) {
    throw dp::BadInput("episode line: hash is not 16 hexadecimal digits");
  }
}

void StateHash::Add(double value) {
  unsigned char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  for (unsigned char byte : bytes) hash_ = (hash_ ^ byte) * 1099511628211ull;
}

}  // namespace pusht

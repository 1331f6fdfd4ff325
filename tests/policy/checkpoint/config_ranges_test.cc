// Every number of config.json has a range, whatever the network: those outside are refused by name,
// those inside make a policy that is finite, and the document shows the same ranges.

#include "policy/ranges/config_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "policy/act/temporal_ensemble.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/scheduler.h"
#include "policy/unet/unet_config.h"
#include "policy/unet/unet_model.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/program.h"

namespace mjp_test {
namespace {

using mjp::Json;
using testing::HasSubstr;

// A config.json of each network, with every number that may be in one.
std::vector<Json> MakeConfigs() {
  mjp::Checkpoint lerobot;
  const auto network = std::make_shared<mjp::UnetModel>();
  network->config = GoldenConfig(GoldenCase::kLeRobotFull);
  lerobot.config = network->config;
  lerobot.stats = GoldenStats(GoldenCase::kLeRobotFull);
  lerobot.network = network;
  std::vector<Json> configs = {mjp::ConfigToJson(lerobot), mjp::ConfigToJson(*CompactCheckpoint()),
                               mjp::ConfigToJson(*ActCheckpoint(SmallActConfig())),
                               mjp::ConfigToJson(*SmallDit(SmallDitConfig(true)))};
  configs[0]["resize_shape"] = {96, 96};
  configs[2]["n_action_steps"] = 1;
  configs[2]["temporal_ensemble_coeff"] = 0.01;
  return configs;
}

std::vector<Json> Configs() {
  static const std::vector<Json> configs = MakeConfigs();
  return configs;
}

std::string RefusalOf(const Json& json) {
  try {
    mjp::ParseConfig(json, "config.json");
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
    return error.what();
  }
  return "";
}

// Calls `visit` with the key and the place of each member that is a number or a list of numbers.
void ForEachNumber(Json& object, const std::function<void(const std::string&, Json&)>& visit) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) ForEachNumber(value, visit);
    if (value.is_number() || (value.is_array() && !value.empty() && value[0].is_number())) {
      visit(key, value);
    }
  }
}

// Puts `number` there, into each place of a list.
Json With(const Json& value, double number) {
  const Json whole = std::floor(number) == number && std::abs(number) < 1e15
                         ? Json(static_cast<int64_t>(number))
                         : Json(number);
  if (!value.is_array()) return whole;
  return Json(std::vector<Json>(value.size(), whole));
}

const mjp::NumberRange* RangeOf(const std::string& key) {
  for (const mjp::RangeTable* table : mjp::AllConfigRanges()) {
    for (const mjp::NumberRange& row : table->rows) {
      if (row.key == key) return &row;
    }
  }
  return nullptr;
}

TEST(ConfigRanges, EachNumberOfEachNetworkHasOne) {
  int numbers = 0;
  for (Json& config : Configs()) {
    SCOPED_TRACE(config["type"]);
    ASSERT_EQ(RefusalOf(config), "");
    ForEachNumber(config, [&](const std::string& key, Json&) {
      EXPECT_NE(RangeOf(key), nullptr) << key;
      ++numbers;
    });
  }
  EXPECT_GT(numbers, 60);
}

TEST(ConfigRanges, WhatIsOutsideIsRefusedByName) {
  for (Json& config : Configs()) {
    ForEachNumber(config, [&](const std::string& key, Json& value) {
      const Json whole = value;
      const double most = std::numeric_limits<double>::max();
      for (const double odd : {-most, -1e18, -2147483649.0, -11.0, 4294967297.0, 1e18, most}) {
        value = With(whole, odd);
        EXPECT_THAT(RefusalOf(config), HasSubstr('"' + key + '"')) << config["type"] << value;
      }
      value = "1";
      EXPECT_THAT(RefusalOf(config), HasSubstr('"' + key + '"')) << config["type"];
      value = whole;
    });
  }
}

// For one table's rows: the end is taken as a number, what lies beyond is not.
TEST(ConfigRanges, TheEndsOfEachTableAreItsOwn) {
  for (const mjp::RangeTable* table : mjp::AllConfigRanges()) {
    for (const auto& [key, low, high] : table->rows) {
      SCOPED_TRACE(key);
      const bool real = low != std::floor(low) || key == "rope_base" ||
                        key == "clip_sample_range" || key == "temporal_ensemble_coeff" ||
                        key == "temperature" || key == "replan_beyond";
      const auto taken = [&, name = std::string(key)](double number) {
        const Json json = {{name, With(0, number)}};
        mjp::KeyReader keys(json, "config.json");
        mjp::RangedKeys numbers(keys, *table);
        try {
          return real ? numbers.Number(name) == number : numbers.Int(name) == number;
        } catch (const mjp::Error&) {
          return false;
        }
      };
      EXPECT_TRUE(taken(low));
      EXPECT_TRUE(taken(high));
      const double below = std::max(std::abs(low) / 2, 1e-9);
      EXPECT_FALSE(taken(real ? low - below : low - 1));
      EXPECT_FALSE(taken(real ? high * 2 : high + 1));
    }
  }
}

TEST(ConfigRanges, AreThoseOfTheDocument) {
  const std::string text = ReadText(MJPOLICY_SOURCE_DIR "/docs/CHECKPOINTS.md");
  for (const mjp::RangeTable* table : mjp::AllConfigRanges()) {
    for (const auto& [key, low, high] : table->rows) {
      char row[160];
      std::snprintf(row, sizeof(row), "| %s | `%s` | %g | %g |", std::string(table->name).c_str(),
                    std::string(key).c_str(), low, high);
      EXPECT_THAT(text, HasSubstr(row));
    }
  }
}

Json LinearSchedule(double start, double end, int steps) {
  return {{"noise_scheduler_type", "DDPM"},
          {"num_train_timesteps", steps},
          {"beta_schedule", "linear"},
          {"beta_start", start},
          {"beta_end", end},
          {"prediction_type", "epsilon"},
          {"clip_sample", false}};
}

mjp::SchedulerConfig Parse(const Json& json) {
  mjp::KeyReader keys(json, "config.json");
  return mjp::ParseScheduler(keys);
}

TEST(ConfigRanges, BetasThatFallOrLeaveNothingAreRefused) {
  EXPECT_NO_THROW(Parse(LinearSchedule(0.0001, 0.02, 1000)));
  EXPECT_NO_THROW(Parse(LinearSchedule(0.02, 0.02, 100)));
  EXPECT_THROW(Parse(LinearSchedule(0.02, 0.0001, 100)), mjp::Error);
  EXPECT_THROW(Parse(LinearSchedule(0.9, 0.999, 100)), mjp::Error);
  EXPECT_THROW(Parse(LinearSchedule(1e-8, 0.02, 100)), mjp::Error);
  Json unused = LinearSchedule(0.02, 0.0001, 100);
  unused["beta_schedule"] = "squaredcos_cap_v2";
  EXPECT_NO_THROW(Parse(unused));
}

// Schedules at the ends of the ranges: refused, or each constant is a finite number.
TEST(ConfigRanges, EverySchedulesConstantsAreFinite) {
  int accepted = 0;
  for (const double start : {1e-6, 1e-4, 0.02, 0.5, 0.999}) {
    for (const double end : {1e-6, 1e-4, 0.02, 0.5, 0.999}) {
      for (const int steps : {1, 2, 3, 100, 1000}) {
        for (const char* schedule : {"linear", "squaredcos_cap_v2"}) {
          Json json = LinearSchedule(start, end, steps);
          json["beta_schedule"] = schedule;
          mjp::SchedulerConfig config;
          try {
            config = Parse(json);
          } catch (const mjp::Error&) {
            continue;
          }
          ++accepted;
          for (const auto kind : {mjp::SamplerKind::kDdpm, mjp::SamplerKind::kDdim}) {
            for (const mjp::DenoiseStep& step : mjp::MakeSchedule(config, kind, steps)) {
              ASSERT_GT(step.sqrt_a, 0) << json << step.timestep;
              for (const float each : {1 / step.sqrt_a, step.sqrt_1ma, step.x0_scale,
                                       step.eps_scale, step.x_scale, step.sigma}) {
                ASSERT_TRUE(std::isfinite(each)) << json << step.timestep;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 150);
}

TEST(ConfigRanges, EnsemblesThatOverflowAreRefused) {
  Json config = Configs()[2];
  int accepted = 0;
  for (const int chunk : {1, 6, 100, 4096}) {
    for (const double m : {-10.0, -1.0, -0.5, -0.01, 0.0, 10.0}) {
      config["chunk_size"] = chunk;
      config["temporal_ensemble_coeff"] = m;
      if (const std::string refusal = RefusalOf(config); !refusal.empty()) {
        EXPECT_THAT(refusal, HasSubstr("\"temporal_ensemble_coeff\""));
        continue;
      }
      ++accepted;
      for (const float share : mjp::TemporalEnsemble(m, chunk, 1).Shares(chunk)) {
        ASSERT_TRUE(std::isfinite(share)) << chunk << " " << m;
      }
    }
  }
  EXPECT_EQ(accepted, 19);
}

}  // namespace
}  // namespace mjp_test

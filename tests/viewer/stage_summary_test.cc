#include "viewer/stage_summary.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "viewer/export.h"

namespace mjp::app {
namespace {

using mjp::Stage;

// A decision whose encoder takes `encode` ms and whose denoising takes `denoise` ms, then physics.
std::shared_ptr<DecisionRecord> Decision(double begin, double encode, double denoise) {
  auto record = std::make_shared<DecisionRecord>();
  record->times[Stage::kEncode] = {begin, begin + 1e-3 * encode};
  record->times[Stage::kDenoise] = {begin + 1e-3 * encode, begin + 1e-3 * (encode + denoise)};
  record->times[Stage::kPhysics] = {begin + 1, begin + 1.5};
  return record;
}

DecisionLog Log(int count) {
  DecisionLog log;
  for (int i = 0; i < count; ++i) log.push_back(Decision(10.0 + i, 1, i + 1));
  return log;
}

TEST(StageSummary, DecisionEndsBeforePhysics) {
  EXPECT_NEAR(RowMilliseconds(Decision(7, 2, 5)->times, kDecisionRow), 7, 1e-9);
  EXPECT_EQ(RowMilliseconds(mjp::StageTimes(), kDecisionRow), 0);
}

TEST(StageSummary, QuantilesAndWorst) {
  const LogSummary summary = Summarise(Log(101));
  const RowSummary& denoise = summary[static_cast<int>(Stage::kDenoise)];
  EXPECT_EQ(denoise.n, 101);
  EXPECT_NEAR(denoise.median, 51, 1e-6);
  EXPECT_NEAR(denoise.p95, 96, 1e-6);
  EXPECT_NEAR(denoise.p99, 100, 1e-6);
  EXPECT_NEAR(denoise.worst, 101, 1e-6);
  EXPECT_EQ(denoise.worst_at, 100);
  EXPECT_EQ(summary[static_cast<int>(Stage::kRender)].n, 0);
  EXPECT_EQ(summary[static_cast<int>(Stage::kRender)].worst_at, -1);
}

TEST(StageSummary, HistogramKeepsEveryDecision) {
  const std::vector<float> counts = Histogram(Log(100), kDecisionRow, 10, 50.5);
  float sum = 0;
  for (const float count : counts) sum += count;
  EXPECT_EQ(sum, 100);
  EXPECT_GT(counts.back(), 50);  // those beyond the end
}

TEST(StageSummary, MissesAreStrictlyOverTheBudget) {
  EXPECT_EQ(CountMisses(Log(10), 6.5), 5);
  EXPECT_EQ(CountMisses(Log(10), 1000), 0);
}

TEST(Export, CsvHasOneRowPerDecisionAndColumnsOfTheHeading) {
  std::istringstream csv(LogToCsv(Log(3)));
  std::string line;
  ASSERT_TRUE(std::getline(csv, line));
  const auto columns = std::count(line.begin(), line.end(), ',');
  EXPECT_EQ(columns, 3 + kRowCount);
  int rows = 0;
  for (; std::getline(csv, line); ++rows) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), columns);
  }
  EXPECT_EQ(rows, 3);
}

constexpr size_t kTracks = 3;  // events that name the tracks of a trace

// A decision on a GPU, as a host stamps it: the scene is the host's, the rest the device's.
std::shared_ptr<DecisionRecord> DeviceDecision() {
  auto record = std::make_shared<DecisionRecord>();
  record->backend = mjp::Backend::kCuda;
  record->times[Stage::kScene] = {5, 5.0001};
  record->times[Stage::kUpload] = {5.0001, 5.0002};
  record->times[Stage::kPrepare] = {5.0002, 5.0003};
  record->times[Stage::kEncode] = {5.0003, 5.0006};
  record->times[Stage::kDenoise] = {5.0006, 5.0016};
  record->times[Stage::kFetch] = {5.0016, 5.0018};
  record->times[Stage::kApply] = {5.0018, 5.0019};
  record->times[Stage::kPhysics] = {5.0019, 5.0029};
  record->times.steps = {{5.0006, 5.0011}, {5.0011, 5.0016}};
  record->times.passes = 2;
  return record;
}

TEST(StageSummary, WhatComesAfterTheUploadIsTheDevices) {
  const auto decision = DeviceDecision();
  for (const Stage stage : {Stage::kScene, Stage::kUpload, Stage::kApply, Stage::kPhysics}) {
    EXPECT_FALSE(OnDevice(*decision, stage)) << mjp::StageName(stage);
  }
  for (const Stage stage : {Stage::kPrepare, Stage::kEncode, Stage::kDenoise, Stage::kFetch}) {
    EXPECT_TRUE(OnDevice(*decision, stage)) << mjp::StageName(stage);
  }
  decision->backend = mjp::Backend::kCpu;
  EXPECT_FALSE(OnDevice(*decision, Stage::kEncode));
  EXPECT_NEAR(RowMilliseconds(decision->times, kDecisionRow), 1.8, 1e-6);
}

TEST(Export, TraceHasTheDevicesStagesOnItsTrack) {
  const auto trace = nlohmann::json::parse(LogToTrace({DeviceDecision()}));
  std::map<int, std::string> tracks;
  std::map<std::string, std::string> where;
  for (const auto& event : trace.at("traceEvents")) {
    const int track = event.at("tid");
    if (event.at("ph") == "M") {
      tracks[track] = event.at("args").at("name");
    } else {
      where[event.at("name")] = tracks.at(track);
    }
  }
  EXPECT_EQ(where.at("scene"), "CPU");
  EXPECT_EQ(where.at("hand-over"), "CPU");
  EXPECT_EQ(where.at("encode"), "GPU");
  EXPECT_EQ(where.at("pass"), "GPU");
  EXPECT_EQ(where.at("fetch"), "GPU");
  EXPECT_EQ(where.at("apply"), "CPU");
  EXPECT_EQ(where.at("physics"), "physics, busy time");
}

TEST(Export, TraceHasEverySpanInMicroseconds) {
  const auto trace = nlohmann::json::parse(LogToTrace(Log(4)));
  nlohmann::json events = trace.at("traceEvents");
  ASSERT_EQ(events.size(), kTracks + 4u * 3);
  for (size_t i = 0; i < kTracks; ++i) EXPECT_EQ(events.at(i).at("ph"), "M");
  events.erase(events.begin(), events.begin() + kTracks);
  double first = 1e9;
  for (const auto& event : events) {
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_GT(event.at("dur").get<double>(), 0);
    first = std::min(first, event.at("ts").get<double>());
  }
  EXPECT_EQ(first, 0);
  EXPECT_NEAR(events[1].at("dur").get<double>(), 1000, 1e-3);
  const std::shared_ptr<DecisionRecord> stamped = Decision(1, 1, 4);
  stamped->times.steps = {{1.001, 1.002}, {1.002, 1.005}};
  const auto with_passes = nlohmann::json::parse(LogToTrace({stamped}));
  ASSERT_EQ(with_passes.at("traceEvents").size(), kTracks + 3u + 2);
  EXPECT_EQ(with_passes.at("traceEvents").back().at("name"), "pass");
  EXPECT_NEAR(with_passes.at("traceEvents").back().at("dur").get<double>(), 3000, 1e-3);
  const auto json = nlohmann::json::parse(LogToJson(Log(4)));
  EXPECT_NEAR(json.at(3).at("milliseconds").at("denoise").get<double>(), 4, 1e-6);
}

}  // namespace
}  // namespace mjp::app

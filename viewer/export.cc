#include "viewer/export.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text_stream.h"
#include "viewer/stage_summary.h"

namespace mjp::app {

std::string LogToCsv(const DecisionLog& log) {
  mjp::TextWriter csv;
  csv << "seed,decision,step,passes";
  for (int row = 0; row < kRowCount; ++row) csv << "," << RowName(row) << "_ms";
  csv << "\n";
  for (const auto& d : log) {
    csv << d->seed << "," << d->decision << "," << d->step << "," << d->times.passes;
    for (int row = 0; row < kRowCount; ++row) csv << "," << RowMilliseconds(d->times, row);
    csv << "\n";
  }
  return csv.str();
}

std::string LogToJson(const DecisionLog& log) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& d : log) {
    nlohmann::ordered_json one = {{"seed", d->seed},
                                  {"decision", d->decision},
                                  {"step", d->step},
                                  {"passes", d->times.passes}};
    for (int row = 0; row < kRowCount; ++row) {
      one["milliseconds"][RowName(row)] = RowMilliseconds(d->times, row);
    }
    all.push_back(std::move(one));
  }
  return JsonText(all, 1) + "\n";
}

std::string LogToTrace(const DecisionLog& log) {
  enum Track { kCpu = 1, kGpu, kPhysics };
  double origin = std::numeric_limits<double>::max();
  for (const auto& d : log) {
    for (const auto& span : d->times.spans) {
      if (span.end > span.begin) origin = std::min(origin, span.begin);
    }
  }
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (const auto& [track, name] : {std::pair(kCpu, "CPU"), std::pair(kGpu, "GPU"),
                                    std::pair(kPhysics, "physics, busy time")}) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", track},
                      {"args", {{"name", name}}}});
  }
  for (const auto& d : log) {
    const auto add = [&](const std::string& name, const mjp::StageTimes::Span& span, int track) {
      if (span.end <= span.begin) return;
      events.push_back({{"name", name},
                        {"ph", "X"},
                        {"ts", 1e6 * (span.begin - origin)},
                        {"dur", 1e6 * (span.end - span.begin)},
                        {"pid", 1},
                        {"tid", track},
                        {"args", {{"seed", d->seed}, {"decision", d->decision}}}});
    };
    const auto device = [&](mjp::Stage stage) { return OnDevice(*d, stage) ? kGpu : kCpu; };
    for (int row = 0; row < kDecisionRow; ++row) {
      const mjp::Stage stage = static_cast<mjp::Stage>(row);
      add(RowName(row), d->times[stage], stage == mjp::Stage::kPhysics ? kPhysics : device(stage));
    }
    for (const mjp::StageTimes::Span& pass : d->times.steps) {
      add("pass", pass, device(mjp::Stage::kDenoise));
    }
  }
  return nlohmann::ordered_json({{"traceEvents", events}, {"displayTimeUnit", "ms"}}).dump() + "\n";
}

}  // namespace mjp::app

#ifndef APPS_BENCH_STAGE_MILLISECONDS_H_
#define APPS_BENCH_STAGE_MILLISECONDS_H_

#include <array>
#include <string>
#include <vector>

#include "apps/bench/harness.h"

namespace mjp::app {

// What the stages of some decisions took.
class StageMilliseconds {
 public:
  void Add(const mjp::StageTimes& times) {
    for (size_t i = 0; i < mjp::kStageCount; ++i) {
      const auto& span = times.spans[i];
      if (span.end > span.begin) stages_[i].push_back(1e3 * (span.end - span.begin));
    }
  }
  // A row for each stage that ran, called `prefix` and its name.
  void AddRows(const std::string& suite, const std::string& prefix, const std::string& device,
               BenchRows& rows) const {
    for (size_t i = 0; i < mjp::kStageCount; ++i) {
      if (stages_[i].empty()) continue;
      const std::string name = mjp::StageName(static_cast<mjp::Stage>(i));
      rows.push_back(FromTimes(suite, prefix + name, stages_[i]));
      rows.back().device = device;
    }
  }

 private:
  std::array<std::vector<double>, mjp::kStageCount> stages_;
};

}  // namespace mjp::app

#endif  // APPS_BENCH_STAGE_MILLISECONDS_H_

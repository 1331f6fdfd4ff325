#include "apps/bench/harness.h"

#include <algorithm>
#include <cmath>

#include "policy/timing.h"
#include "tasks/results/statistics.h"

namespace mjp::app {

BenchRow FromTimes(const std::string& suite, const std::string& name,
                   const std::vector<double>& milliseconds) {
  BenchRow row;
  row.suite = suite;
  row.name = name;
  row.n = static_cast<int>(milliseconds.size());
  row.median = Quantile(milliseconds, 0.5);
  row.p99 = Quantile(milliseconds, 0.99);
  return row;
}

BenchRow Skipped(const std::string& suite, const std::string& name, const std::string& why) {
  BenchRow row;
  row.suite = suite;
  row.name = name;
  row.device.clear();
  row.note = "skipped: " + why;
  return row;
}

void RepeatFor(double seconds, const std::function<void()>& work) {
  constexpr int kLeast = 5;
  const double end = mjp::Now() + seconds;
  for (int n = 0; n < kLeast || mjp::Now() < end; ++n) work();
}

void Repeat(const BenchOptions& options, const std::function<void()>& work) {
  if (options.decisions == 0) return RepeatFor(options.seconds, work);
  for (int n = 0; n < options.decisions; ++n) work();
}

BenchRow Measure(const std::string& suite, const std::string& name, double seconds, double items,
                 const std::string& unit, const std::function<void()>& work) {
  constexpr int kWarmUp = 2;
  constexpr double kShort = 50e-6;  // seconds that the clock's own cost does not spoil
  for (int i = 0; i < kWarmUp; ++i) work();
  const double first = mjp::Now();
  work();
  const int calls = std::max(1, static_cast<int>(std::ceil(kShort / (mjp::Now() - first))));
  std::vector<double> times;
  RepeatFor(seconds, [&] {
    const double begin = mjp::Now();
    for (int i = 0; i < calls; ++i) work();
    times.push_back(1e3 * (mjp::Now() - begin) / calls);
  });
  BenchRow row = FromTimes(suite, name, times);
  row.items = items;
  row.unit = unit;
  return row;
}

}  // namespace mjp::app

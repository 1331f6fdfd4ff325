#include "apps/bench/harness.h"

#include "policy/timing.h"
#include "task/statistics.h"

namespace pusht {

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

BenchRow Measure(const std::string& suite, const std::string& name, double seconds, double items,
                 const std::string& unit, const std::function<void()>& work) {
  constexpr int kWarmUp = 2, kLeast = 5;
  for (int i = 0; i < kWarmUp; ++i) work();
  std::vector<double> times;
  const double end = dp::Now() + seconds;
  while (dp::Now() < end || times.size() < kLeast) {
    const double begin = dp::Now();
    work();
    times.push_back(1e3 * (dp::Now() - begin));
  }
  BenchRow row = FromTimes(suite, name, times);
  row.items = items;
  row.unit = unit;
  return row;
}

const std::map<std::string, Suite>& Suites() {
  static const std::map<std::string, Suite> suites = {
#ifdef PUSHT_HAVE_CUDA
      {"gpu", BenchGpu},
#endif
      {"pictures", BenchPictures},
      {"physics", BenchPhysics},
      {"policy", BenchPolicy}};
  return suites;
}

}  // namespace pusht

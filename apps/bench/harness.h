#ifndef APPS_BENCH_HARNESS_H_
#define APPS_BENCH_HARNESS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/rasterise.h"
#include "policy/policy.h"

namespace pusht {

// One line of a benchmark: times of one repetition in milliseconds, and what that makes per second.
struct BenchRow {
  std::string suite, name;
  int n = 0;                   // repetitions measured
  double median = 0, p99 = 0;  // milliseconds
  double items = 1;            // of work in one repetition
  std::string unit;            // of the items: "frames", "control steps", ...
  std::string note;

  double Rate() const { return median > 0 ? items / median * 1e3 : 0; }  // items per second
};

struct BenchOptions {
  double seconds = 1;  // of measuring per row
  std::string network = "compact";
  std::string checkpoint;  // instead of a named network
  dp::PolicyOptions policy;
};

// Times `work` again and again for about `seconds`, after a warm-up.
BenchRow Measure(const std::string& suite, const std::string& name, double seconds, double items,
                 const std::string& unit, const std::function<void()>& work);

// A row from times in milliseconds that were measured elsewhere.
BenchRow FromTimes(const std::string& suite, const std::string& name,
                   const std::vector<double>& milliseconds);

// The suites, by name.
using Suite = std::function<std::vector<BenchRow>(const BenchOptions&)>;
const std::map<std::string, Suite>& Suites();

// One launch that draws `scenes` on the GPU, in device memory; a note instead where there is none.
BenchRow BenchRasteriserOnGpu(const std::vector<dp::FlatScene>& scenes);
std::vector<BenchRow> BenchPictures(const BenchOptions& options);
std::vector<BenchRow> BenchPhysics(const BenchOptions& options);
// The networks' launches on the GPU at the configured batch: each alone, a pass, the encoder.
std::vector<BenchRow> BenchGpu(const BenchOptions& options);
std::vector<BenchRow> BenchPolicy(const BenchOptions& options);

}  // namespace pusht

#endif  // APPS_BENCH_HARNESS_H_

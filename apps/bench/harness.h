#ifndef APPS_BENCH_HARNESS_H_
#define APPS_BENCH_HARNESS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "tasks/pusht/options.h"

namespace mjp::app {

// One line of a benchmark: times of one repetition in milliseconds, and what that makes per second.
struct BenchRow {
  std::string suite, name;
  std::string device = "CPU";  // or "GPU": by the device's own clock
  std::string caches;          // GPU: "loop" beside copies of itself, "cold" with nothing in L2
  int n = 0;                   // repetitions measured
  double median = 0, p99 = 0;  // milliseconds
  double items = 1;            // of work in one repetition
  std::string unit;            // of the items: "frames", "control steps", ...
  std::string note;

  double Rate() const { return median > 0 ? items / median * 1e3 : 0; }  // items per second
};
using BenchRows = std::vector<BenchRow>;

struct BenchOptions {
  double seconds = 1;  // of measuring per row
  int decisions = 0;   // where the suite counts them; 0: as it sees fit
  std::shared_ptr<const mjp::Checkpoint> network;
  std::string checkpoint, model;  // of the suite episode: directory, task file
  mjp::PolicyOptions policy;
  RendererKind renderer = RendererKind::kRaster;  // of the suite decision
  std::vector<std::string> suites;                // that were named; none: all but the large ones
};

// Times `work` again and again for about `seconds`, after a warm-up. Short work is timed several
// calls at once.
BenchRow Measure(const std::string& suite, const std::string& name, double seconds, double items,
                 const std::string& unit, const std::function<void()>& work);

// Calls `work` for about `seconds`, a few times at least; what it measures it keeps itself.
void RepeatFor(double seconds, const std::function<void()>& work);

// `decisions` times where that is not 0, else for about `seconds`.
void Repeat(const BenchOptions& options, const std::function<void()>& work);

// A row from times in milliseconds that were measured elsewhere.
BenchRow FromTimes(const std::string& suite, const std::string& name,
                   const std::vector<double>& milliseconds);

// A row that says why there is no figure.
BenchRow Skipped(const std::string& suite, const std::string& name, const std::string& why);

// What runs under one name.
using Suite = std::function<BenchRows(const BenchOptions&)>;

BenchRows BenchKernels(const BenchOptions& options);   // every operator alone
BenchRows BenchLadder(const BenchOptions& options);    // how kernels became fast
BenchRows BenchPass(const BenchOptions& options);      // a U-Net pass, the encoder, their launches
BenchRows BenchChunk(const BenchOptions& options);     // all denoising steps
BenchRows BenchParallel(const BenchOptions& options);  // what windows of steps save and change
BenchRows BenchDecision(const BenchOptions& options);  // pictures to actions, by stage
BenchRows BenchBatch(const BenchOptions& options);     // episodes: physics, pictures, network
BenchRows BenchLoad(const BenchOptions& options);      // what passes before the first decision
BenchRows BenchPictures(const BenchOptions& options);
BenchRows BenchPhysics(const BenchOptions& options);
BenchRows BenchEpisode(const BenchOptions& options);  // of a task file, by what takes the time
// Of LeRobot's ACT and multi_task_dit, whatever the network asked for.
BenchRows BenchAct(const BenchOptions& options);
BenchRows BenchDit(const BenchOptions& options);

}  // namespace mjp::app

#endif  // APPS_BENCH_HARNESS_H_

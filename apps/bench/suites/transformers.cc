#include <string>
#include <utility>

#include "apps/bench/default_networks.h"
#include "apps/bench/harness.h"
#include "apps/bench/observations.h"
#include "apps/bench/stage_milliseconds.h"

// ACT and the diffusion transformer at LeRobot's default sizes, with random weights: a decision
// from pictures to a chunk, and its stages.

namespace mjp::app {
namespace {

constexpr int kBatches[] = {1, 64};

// What a decision is given.
enum class Given { kPictures, kPageLockedPictures, kScenes, kFeatures };
constexpr const char* kGivenNames[] = {"picture to chunk", "page-locked picture to chunk",
                                       "scene to chunk", "features to chunk"};

ObservedPictures PicturesOf(Given given) {
  if (given == Given::kPictures) return ObservedPictures::kPageable;
  return given == Given::kPageLockedPictures ? ObservedPictures::kPageLocked
                                             : ObservedPictures::kScenes;
}

// What decisions took, milliseconds: as the caller waits for them, and their stages.
struct DecisionTimes {
  std::vector<double> whole;
  StageMilliseconds stages;
};

DecisionTimes Measure(const BenchOptions& options, mjp::Policy& policy, Given given) {
  BenchObservations observations(*options.network, policy.options().batch, PicturesOf(given));
  mjp::PolicyOutput output;
  DecisionTimes times;
  const auto decide = [&] {
    const mjp::PolicyInput input =
        given == Given::kFeatures ? observations.NextChunk() : observations.Next();
    const double begin = mjp::Now();
    policy.Infer(input, output);
    times.whole.push_back(1e3 * (mjp::Now() - begin));
    times.stages.Add(output.times);
  };
  decide();  // captures the graph
  times = {};
  Repeat(options, decide);
  return times;
}

// Decisions on pictures, or on ready features. The whole is timed without its stages, as the plugin
// decides, and the stages by themselves. On the CPU one environment and pictures alone: more would
// take minutes.
void AddDecisions(const BenchOptions& options, const std::string& suite, int batch, Given given,
                  BenchRows& rows) {
  mjp::PolicyOptions policy_options = options.policy;
  policy_options.batch = batch;
  policy_options.timing = mjp::TimingDetail::kNone;
  const auto policy = mjp::Policy::Create(options.network, policy_options);
  const bool gpu = policy->options().backend == mjp::Backend::kCuda;
  const bool of_gpu = given == Given::kPageLockedPictures || given == Given::kScenes;
  if (!gpu && (batch > 1 || of_gpu)) return;
  DecisionTimes times = Measure(options, *policy, given);
  const std::string name =
      std::string(kGivenNames[static_cast<size_t>(given)]) + ", batch " + std::to_string(batch);
  rows.push_back(FromTimes(suite, name, times.whole));
  rows.back().items = batch;
  rows.back().unit = "chunks";
  rows.back().note = policy->Description();
  policy_options.timing = mjp::TimingDetail::kStages;
  if (gpu) times = Measure(options, *mjp::Policy::Create(options.network, policy_options), given);
  times.stages.AddRows(suite, name + ": ", gpu ? "GPU" : "CPU", rows);
}

}  // namespace

BenchRows BenchAct(const BenchOptions& options) {
  BenchOptions own = options;
  own.network = DefaultAct();
  BenchRows rows;
  for (const Given given : {Given::kPictures, Given::kPageLockedPictures}) {
    for (const int batch : kBatches) AddDecisions(own, "act", batch, given, rows);
  }
  return rows;
}

BenchRows BenchDit(const BenchOptions& options) {
  BenchOptions own = options;
  own.network = DefaultDit();
  BenchRows rows;
  for (const Given given : {Given::kPictures, Given::kScenes})
    AddDecisions(own, "dit", kBatches[0], given, rows);
  for (const int batch : kBatches) AddDecisions(own, "dit", batch, Given::kFeatures, rows);
  return rows;
}

}  // namespace mjp::app

#ifndef TASKS_EVALUATION_EVALUATION_H_
#define TASKS_EVALUATION_EVALUATION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "tasks/evaluation/episode.h"
#include "tasks/pusht/physics/batch_physics.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {

// Where the policy runs: in the engine plugin, one simulation at a time, or beside a batch of
// simulations. Both give the same episodes bit for bit.
enum class Through { kBatch, kPlugin };
enum class PhysicsKind { kMujoco, kChipmunk };
enum class RendererKind { kRaster, kMujoco };

// What makes an evaluation harder than the benchmark. All zero: the benchmark itself.
struct Conditions {
  int latency = 0;           // control steps between an observation and the first action from it
  double picture_noise = 0;  // standard deviation of every pixel value, levels
  double brightness = 0;     // largest relative change, drawn per episode
  int picture_shift = 0;     // largest shift in x and y, pixels, drawn per episode
  double action_noise = 0;   // standard deviation of every target, pixels
  double push = 0;           // displacement of the block every two seconds, pixels
  double success_coverage = 0.95;
};

struct EvaluationOptions {
  std::string checkpoint;  // directory
  int episodes = 50;
  uint32_t seed = 100000;  // episode i starts from seed + i
  int max_steps = 300;
  mjp::PolicyOptions policy;
  RendererKind renderer = RendererKind::kRaster;
  PhysicsKind physics = PhysicsKind::kMujoco;
  Through through = Through::kBatch;
  int action_steps = 0;      // actions executed per decision; 0: as the checkpoint says
  double end_coverage = -1;  // an episode goes on until coverage exceeds this, success or not
  Conditions conditions;
  int videos = 0;  // of the first episodes
  std::string video_folder;
  int shard_index = 0, shard_count = 1;  // this process takes the episodes i % count == index
};

// Statistics of the wall time of one stage over all decisions, milliseconds.
struct StageSummary {
  int n = 0;
  double median = 0, p99 = 0, total = 0;
};

struct EvaluationResult {
  std::vector<EpisodeResult> episodes;  // finished in this run, in order of index
  std::vector<std::string> videos;      // files written
  std::map<std::string, StageSummary> stages;
  double seconds = 0;   // wall time of this run
  std::string backend;  // as the policy describes itself
  bool interrupted = false;
};

// Called after every finished episode, on the calling thread.
using EpisodeCallback = std::function<void(const EpisodeResult&)>;

// One decision of an episode.
struct Decision {
  State previous, state;         // one control step apart; the same at an episode's start
  Target target;                 // held between the two
  std::span<const float> chunk;  // (H, 2): the policy's answer, pixels; valid during the call
};

// Called for every decision, on the calling thread.
using DecisionCallback = std::function<void(const Decision&)>;

// Runs the episodes whose indices are in `pending`; `policy` was made of options.checkpoint with
// options.policy. Stops between decisions when `stop` becomes true. Throws Error for options that
// cannot be met. `on_decision` is called where the policy runs beside the batch, not through the
// plugin.
EvaluationResult Evaluate(const EvaluationOptions& options, std::unique_ptr<mjp::Policy> policy,
                          const std::vector<int>& pending, const EpisodeCallback& on_episode,
                          const std::atomic<bool>& stop, const DecisionCallback& on_decision = {});

// Actions executed per decision: the option, or what the checkpoint says. Throws Error if a chunk
// does not have so many.
int ResolveActionSteps(const EvaluationOptions& options, const mjp::PolicyConfig& config);

// Accounts for one control step that led to `state`; `failure` is why it is not to be trusted, or
// "". Returns whether the episode goes on.
bool ScoreStep(const EvaluationOptions& options, const State& state, const std::string& failure,
               EpisodeResult& result, StateHash& hash);

// The indices of this shard: i in [0, episodes) with i % shard_count == shard_index.
std::vector<int> ShardIndices(const EvaluationOptions& options);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_EVALUATION_H_

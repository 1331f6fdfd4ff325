#include "tasks/evaluation/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "tasks/evaluation/disturbances.h"
#include "tasks/evaluation/plugin_evaluation.h"
#include "tasks/evaluation/stage_statistics.h"
#include "tasks/pusht/coverage.h"
#include "tasks/pusht/environments.h"
#include "tasks/pusht/observation.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/recording/episode_video.h"

namespace mjp::app {
namespace {

// One episode on its way.
struct Slot {
  EpisodeResult result;
  StateHash hash;
  std::vector<Snapshot> history;             // the last n_obs_steps control steps, oldest first
  Target target;                             // held last
  std::vector<float> chunk, previous_chunk;  // (H, 2)
  std::unique_ptr<EpisodeVideo> video;
  double begin = 0;
  bool running = false;
};

// Environments that decide together, in one network call.
struct Group {
  size_t begin = 0, end = 0;  // slots
  std::vector<int> deciding;  // slots of the decision under way
};

// Many robots beside each other: every running episode of a group takes one decision, then all
// execute their actions, then the finished ones make room for the next. Where there are episodes
// for two groups, one moves while the policy computes for the other.
class BatchEvaluator {
 public:
  BatchEvaluator(const EvaluationOptions& options, std::unique_ptr<mjp::Policy> policy,
                 size_t episodes, const DecisionCallback& on_decision)
      : options_(options),
        on_decision_(on_decision),
        model_(LoadModel(ModelPath("pusht.xml"))),
        scene_(model_.get()),
        policy_(std::move(policy)),
        observer_(options_, policy_->config(), scene_),
        slots_(std::min<size_t>(2 * static_cast<size_t>(options.policy.batch), episodes)),
        environments_(MakeEnvironments(options.physics, model_.get(),
                                       static_cast<int>(slots_.size()), options.policy.threads)) {
    const mjp::PolicyConfig& config = policy_->config();
    const size_t batch = options.policy.batch;
    for (size_t begin = 0; begin < slots_.size(); begin += batch)
      groups_.push_back({begin, std::min(begin + batch, slots_.size()), {}});
    action_steps_ = ResolveActionSteps(options, config);
    if (options.conditions.latency > action_steps_) {
      throw mjp::Error(mjp::ExitCode::kUsage,
                       "--latency must not exceed the actions per decision (" +
                           std::to_string(action_steps_) + ")");
    }
  }

  EvaluationResult Run(const std::vector<int>& pending, const EpisodeCallback& on_episode,
                       const std::atomic<bool>& stop) {
    EvaluationResult result;
    result.backend = policy_->Description();
    const double begin = mjp::Now();
    pending_ = pending;
    size_t current = 0;
    bool deciding = Launch(groups_[current]);
    while (deciding && !stop) {
      Group& group = groups_[current];
      Receive(group);
      const size_t other = (current + 1) % groups_.size();
      const bool overlapped = other != current && Launch(groups_[other]);
      Execute(group);
      Collect(group, result, on_episode);
      deciding = overlapped || Launch(group);
      if (overlapped) current = other;
    }
    policy_->Wait();
    result.interrupted = stop;
    result.stages = stages_.Summary();
    result.seconds = mjp::Now() - begin;
    std::sort(result.episodes.begin(), result.episodes.end(),
              [](const auto& a, const auto& b) { return a.index < b.index; });
    return result;
  }

 private:
  Snapshot Take(int i) const {
    Snapshot snapshot{environments_->Read(i), std::vector<mjtNum>(model_->nq)};
    environments_->ReadQpos(i, snapshot.qpos.data());
    return snapshot;
  }

  void Begin(int i, int index) {
    Slot& slot = slots_[i];
    slot = Slot();
    slot.running = true;
    slot.begin = mjp::Now();
    slot.result.index = index;
    slot.result.seed = options_.seed + static_cast<uint32_t>(index);
    environments_->Start(i, BenchmarkStart(slot.result.seed));
    slot.history.assign(policy_->config().n_obs_steps, Take(i));
    const State& state = slot.history.back().state;
    slot.target = {state.agent_x, state.agent_y};
    // before the first chunk arrives the agent stays where it is
    for (int k = 0; k < policy_->config().horizon; ++k) {
      slot.chunk.push_back(static_cast<float>(state.agent_x));
      slot.chunk.push_back(static_cast<float>(state.agent_y));
    }
    if (index < options_.videos) {
      slot.video = std::make_unique<EpisodeVideo>(options_.video_folder, slot.result);
      slot.video->Add(state, slot.result);
    }
  }

  // Fills the group's free slots and starts one network call for all its episodes. False if it
  // has none.
  bool Launch(Group& group) {
    observer_.Clear();
    group.deciding.clear();
    for (size_t i = group.begin; i < group.end; ++i) {
      if (!slots_[i].running && next_ < pending_.size())
        Begin(static_cast<int>(i), pending_[next_++]);
      const Slot& slot = slots_[i];
      if (!slot.running) continue;
      group.deciding.push_back(static_cast<int>(i));
      observer_.Add(slot.history, slot.result.seed, slot.result.steps,
                    static_cast<uint32_t>(slot.result.decisions));
    }
    if (group.deciding.empty()) return false;
    policy_->Launch(observer_.Input(), output_);
    return true;
  }

  // Waits for the group's decision and hands out the chunks.
  void Receive(Group& group) {
    policy_->Wait();
    stages_.Add(output_.times);
    const size_t size = static_cast<size_t>(policy_->config().horizon) * 2;
    for (size_t k = 0; k < group.deciding.size(); ++k) {
      Slot& slot = slots_[group.deciding[k]];
      slot.previous_chunk = std::move(slot.chunk);
      slot.chunk.assign(output_.actions.begin() + k * size,
                        output_.actions.begin() + (k + 1) * size);
      ++slot.result.decisions;
      if (!on_decision_) continue;
      const Snapshot& previous = slot.history[slot.history.size() - 2];
      on_decision_({previous.state, slot.history.back().state, slot.target, slot.chunk});
    }
  }

  // The target of control step `k` after a decision: the first `latency` steps still follow the
  // chunk before, further along.
  Target TargetOf(const Slot& slot, int k) const {
    const bool late = k < options_.conditions.latency;
    const std::vector<float>& chunk = late ? slot.previous_chunk : slot.chunk;
    const int last = policy_->config().horizon - 1;
    const int step = policy_->config().FirstAction() + k + (late ? action_steps_ : 0);
    const size_t at = 2 * static_cast<size_t>(std::min(step, last));
    return DisturbTarget(options_.conditions, slot.result.seed, slot.result.steps,
                         {chunk[at], chunk[at + 1]});
  }

  void Execute(const Group& group) {
    for (int k = 0; k < action_steps_; ++k) {
      moving_.clear();
      targets_.clear();
      for (const int i : group.deciding) {
        Slot& slot = slots_[i];
        if (!slot.running) continue;
        const Target push = PushAt(options_.conditions, slot.result.seed, slot.result.steps);
        if (push.x != 0 || push.y != 0) environments_->Push(i, push.x, push.y);
        slot.target = TargetOf(slot, k);
        moving_.push_back(i);
        targets_.push_back(slot.target);
      }
      if (moving_.empty()) return;
      environments_->Step(moving_, targets_);
      for (const int i : moving_) Observe(i);
    }
  }

  void Observe(int i) {
    Slot& slot = slots_[i];
    std::rotate(slot.history.begin(), slot.history.begin() + 1, slot.history.end());
    slot.history.back() = Take(i);
    slot.running = ScoreStep(options_, slot.history.back().state, environments_->Failure(i),
                             slot.result, slot.hash);
    if (slot.video) slot.video->Add(slot.history.back().state, slot.result);
  }

  void Collect(const Group& group, EvaluationResult& result, const EpisodeCallback& on_episode) {
    for (const int i : group.deciding) {
      Slot& slot = slots_[i];
      if (slot.running) continue;
      slot.result.hash = slot.hash.value();
      slot.result.seconds = mjp::Now() - slot.begin;
      if (slot.video) result.videos.push_back(slot.video->Close());
      on_episode(slot.result);
      result.episodes.push_back(slot.result);
    }
  }

  const EvaluationOptions& options_;
  const DecisionCallback& on_decision_;
  ModelPtr model_;
  Scene scene_;
  std::unique_ptr<mjp::Policy> policy_;
  Observer observer_;
  std::vector<Slot> slots_;
  std::unique_ptr<Environments> environments_;
  std::vector<Group> groups_;
  std::vector<int> pending_;  // indices of the episodes to run, of which
  size_t next_ = 0;           // these have begun
  int action_steps_ = 0;
  mjp::PolicyOutput output_;
  StageStatistics stages_;
  std::vector<int> moving_;
  std::vector<Target> targets_;
};

}  // namespace

int ResolveActionSteps(const EvaluationOptions& options, const mjp::PolicyConfig& config) {
  const int most = config.horizon - config.FirstAction();
  const int steps = options.action_steps > 0 ? options.action_steps : config.n_action_steps;
  if (steps > most) {
    throw mjp::Error(mjp::ExitCode::kUsage, "--action-steps " + std::to_string(steps) +
                                                ": a chunk of this checkpoint has only " +
                                                std::to_string(most) + " actions to execute");
  }
  return steps;
}

bool ScoreStep(const EvaluationOptions& options, const State& state, const std::string& failure,
               EpisodeResult& result, StateHash& hash) {
  ++result.steps;
  for (const double value :
       {state.agent_x, state.agent_y, state.block_x, state.block_y, state.block_angle}) {
    hash.Add(value);
  }
  if (!failure.empty()) {
    result.valid = false;
    result.reason = failure;
    return false;
  }
  const double coverage = Coverage(state);
  const double reward = Score(coverage);
  result.final_coverage = coverage;
  result.max_coverage = std::max(result.max_coverage, coverage);
  result.sum_reward += reward;
  result.max_reward = std::max(result.max_reward, reward);
  if (result.success_step < 0 && coverage > options.conditions.success_coverage) {
    result.success_step = result.steps;
  }
  const bool reached = result.success_step >= 0 && coverage > options.end_coverage;
  return !reached && result.steps < options.max_steps;
}

std::vector<int> ShardIndices(const EvaluationOptions& options) {
  std::vector<int> indices;
  for (int i = options.shard_index; i < options.episodes; i += options.shard_count) {
    indices.push_back(i);
  }
  return indices;
}

EvaluationResult Evaluate(const EvaluationOptions& options, std::unique_ptr<mjp::Policy> policy,
                          const std::vector<int>& pending, const EpisodeCallback& on_episode,
                          const std::atomic<bool>& stop, const DecisionCallback& on_decision) {
  if (options.through == Through::kPlugin) {
    return EvaluateThroughPlugin(options, std::move(policy), pending, on_episode, stop);
  }
  return BatchEvaluator(options, std::move(policy), std::max<size_t>(1, pending.size()),
                        on_decision)
      .Run(pending, on_episode, stop);
}

}  // namespace mjp::app

#include "tasks/evaluation/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "policy/act/temporal_ensemble.h"
#include "policy/prefix/chunk_timing.h"
#include "policy/prefix/moment_noise.h"
#include "tasks/evaluation/disturbances.h"
#include "tasks/evaluation/plugin_evaluation.h"
#include "tasks/evaluation/stage_statistics.h"

namespace mjp::app {
namespace {

// One episode on its way.
struct Slot {
  EpisodeResult result;
  StateHash hash;
  SmoothnessMeter smoothness;
  std::vector<double> action;             // (action_dim): executed last
  std::deque<std::vector<float>> chunks;  // (H, action_dim) each, the newest first
  std::unique_ptr<EpisodeVideo> video;
  double begin = 0;
  bool running = false;
  int chunk_age = -1;  // control steps since the observation of the newest; -1: there is none
};

// Environments that decide together, in one network call.
struct Group {
  size_t begin = 0, end = 0;  // slots
  std::vector<int> deciding;  // slots of the decision under way
};

// Many robots beside each other: every running episode of a group takes one decision, then all
// execute their actions, then the finished ones make room for the next. Where there are episodes
// for two groups, one moves while the policy computes for the other.
class BatchEvaluation : public Evaluation {
 public:
  BatchEvaluation(const Task& task, const EvaluationOptions& options,
                  std::unique_ptr<mjp::Policy> policy, size_t episodes,
                  const DecisionCallback& on_decision)
      : task_(task),
        options_(options),
        on_decision_(on_decision),
        policy_(std::move(policy)),
        slots_(std::clamp<size_t>(episodes, 1, 2 * static_cast<size_t>(options.policy.batch))),
        simulations_(task.MakeBatch(options, *policy_, static_cast<int>(slots_.size()))),
        max_steps_(ResolveMaxSteps(options, task)),
        action_steps_(ResolveActionSteps(options, policy_->config())),
        kept_(mjp::KeptChunks(options.conditions.Latency(), action_steps_)),
        ensemble_(mjp::EnsembleOf(policy_->config())),
        replanning_(mjp::ReplanningOf(policy_->config(), RuleOf(options, policy_->config()),
                                      action_steps_, options.conditions.Latency(),
                                      "--replan-beyond", mjp::ExitCode::kUsage)) {
    const size_t batch = options.policy.batch;
    for (size_t begin = 0; begin < slots_.size(); begin += batch)
      groups_.push_back({begin, std::min(begin + batch, slots_.size()), {}});
    const int most = mjp::MostLatency(policy_->config(), action_steps_);
    if (options.conditions.Latency() > most) {
      throw mjp::Error(mjp::ExitCode::kUsage,
                       "--latency must not exceed the " + std::to_string(most) +
                           " control steps that a chunk lasts beyond its own decision");
    }
  }

  EvaluationResult Run(const std::vector<int>& pending, const EpisodeCallback& on_episode,
                       const std::atomic<bool>& stop) override {
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
    result.slowest = stages_.slowest();
    loop_.physics = simulations_->seconds().physics;
    loop_.pictures = simulations_->seconds().pictures;
    result.loop = loop_;
    result.seconds = mjp::Now() - begin;
    std::sort(result.episodes.begin(), result.episodes.end(),
              [](const auto& a, const auto& b) { return a.index < b.index; });
    return result;
  }

 private:
  void Begin(int i, int index) {
    Slot& slot = slots_[i];
    slot = Slot();
    slot.running = true;
    slot.begin = mjp::Now();
    slot.result = NewEpisode(task_, index, options_.seed + static_cast<uint32_t>(index));
    simulations_->Start(i, slot.result.seed);
    slot.action = simulations_->HeldAction(i);
    // before the first chunk arrives nothing moves
    std::vector<float> held;
    for (int k = 0; k < policy_->config().horizon; ++k)
      held.insert(held.end(), slot.action.begin(), slot.action.end());
    slot.chunks.assign(kept_, held);
    if (index < options_.videos) {
      slot.video = simulations_->MakeVideo(i, options_.video_folder, slot.result);
      slot.video->Add(slot.result);
    }
  }

  // Fills the group's free slots and starts one network call for all its episodes. False if it
  // has none.
  bool Launch(Group& group) {
    simulations_->ClearInput();
    group.deciding.clear();
    prefix_.clear(), prefix_steps_.clear(), start_.clear();
    for (size_t i = group.begin; i < group.end; ++i) {
      if (!slots_[i].running && next_ < pending_.size())
        Begin(static_cast<int>(i), pending_[next_++]);
      const Slot& slot = slots_[i];
      if (!slot.running) continue;
      group.deciding.push_back(static_cast<int>(i));
      simulations_->AddInput(static_cast<int>(i), slot.result.seed, slot.result.steps,
                             static_cast<uint32_t>(slot.result.decisions));
      if (options_.policy.sampler.prefix) AddPrefix(slot);
    }
    if (group.deciding.empty()) return false;
    mjp::PolicyInput input = simulations_->Input();
    input.prefix = prefix_, input.prefix_steps = prefix_steps_, input.x_start = start_;
    const double begin = mjp::Now();
    policy_->Launch(input, output_);
    loop_.policy += mjp::Now() - begin;
    return true;
  }

  // What of the next chunk of `slot` is known: what the chunk that acts then goes on with.
  void AddPrefix(const Slot& slot) {
    const mjp::PolicyConfig& config = policy_->config();
    const int latency = options_.conditions.Latency();
    const int ago = std::max(1, mjp::DecisionsAgo(0, latency, action_steps_));
    const bool known = slot.result.decisions >= ago;
    prefix_steps_.push_back(known ? mjp::PrefixSteps(config, latency) : 0);
    const size_t begin = prefix_.size(), rows = prefix_steps_.back();
    prefix_.resize(begin + static_cast<size_t>(config.horizon) * ActionDim());
    if (options_.policy.sampler.warm_start > 0) {
      start_.resize(prefix_.size());
      mjp::FillMomentNoise(config, slot.result.seed, static_cast<uint32_t>(slot.result.decisions),
                           action_steps_, *policy_->options().sampler.temperature,
                           std::span(start_).subspan(begin));
      const auto chunk = [&](int n) { return std::span<const float>(slot.chunks[n - 1]); };
      return mjp::CopyPlan(config, latency, action_steps_, chunk,
                           std::span(prefix_).subspan(begin));
    }
    mjp::CopyAhead<float>(slot.chunks[ago - 1], config.action_dim, ago * action_steps_,
                          std::span(prefix_).subspan(begin, rows * ActionDim()));
  }

  // Waits for the group's decision and hands out the chunks.
  void Receive(Group& group) {
    const double begin = mjp::Now();
    policy_->Wait();
    loop_.policy += mjp::Now() - begin;
    stages_.Add(output_.times);
    const size_t size = static_cast<size_t>(policy_->config().horizon) * ActionDim();
    for (size_t k = 0; k < group.deciding.size(); ++k) {
      const int i = group.deciding[k];
      Slot& slot = slots_[i];
      slot.chunks.pop_back();
      slot.chunks.emplace_front(output_.actions.begin() + k * size,
                                output_.actions.begin() + (k + 1) * size);
      if (ensemble_) ensemble_->Fold(slot.chunks[1], slot.result.decisions, slot.chunks[0]);
      if (replanning_)
        slot.chunk_age = replanning_->Choose(slot.chunks[1], slot.chunk_age, slot.chunks[0]);
      ++slot.result.decisions;
      if (!on_decision_) continue;
      std::span<const float> prefix;
      if (!prefix_steps_.empty())
        prefix = std::span(prefix_).subspan(k * size, prefix_steps_[k] * ActionDim());
      ahead_.clear();
      for (int step = 0; step < options_.conditions.Latency(); ++step) {
        const std::span<const float> action = ActionOf(slot, step);
        ahead_.insert(ahead_.end(), action.begin(), action.end());
      }
      on_decision_({simulations_->PreviousState(i), simulations_->State(i), slot.action,
                    slot.chunks[0], prefix, ahead_});
    }
  }

  size_t ActionDim() const { return policy_->config().action_dim; }

  // The action of control step `k` after the newest decision of `slot`: the first `latency` steps
  // still follow a chunk before, further along.
  std::span<const float> ActionOf(const Slot& slot, int k) const {
    const int ago = mjp::DecisionsAgo(k, options_.conditions.Latency(), action_steps_);
    const int last = policy_->config().horizon - 1;
    const int step = policy_->config().FirstAction() + k + ago * action_steps_;
    return std::span(slot.chunks[ago])
        .subspan(ActionDim() * static_cast<size_t>(std::min(step, last)), ActionDim());
  }

  // Sets the action of control step `k` after a decision.
  void Choose(Slot& slot, int k) const {
    const std::span<const float> action = ActionOf(slot, k);
    slot.action.assign(action.begin(), action.end());
    slot.smoothness.Add(slot.action, k == options_.conditions.Latency() % action_steps_);
    DisturbAction(options_.conditions, slot.result.seed, slot.result.steps, slot.action);
  }

  void Execute(const Group& group) {
    for (int k = 0; k < action_steps_; ++k) {
      moving_.clear();
      actions_.clear();
      for (const int i : group.deciding) {
        Slot& slot = slots_[i];
        if (!slot.running) continue;
        simulations_->Disturb(i, slot.result.seed, slot.result.steps);
        Choose(slot, k);
        moving_.push_back(i);
        actions_.insert(actions_.end(), slot.action.begin(), slot.action.end());
      }
      if (moving_.empty()) return;
      simulations_->Step(moving_, actions_);
      loop_.steps += static_cast<int64_t>(moving_.size());
      for (const int i : moving_) Judge(i);
    }
    std::erase_if(moving_, [this](int i) { return !slots_[i].running; });
    simulations_->Observe(moving_);
  }

  void Judge(int i) {
    Slot& slot = slots_[i];
    simulations_->Judge(i, outcome_);
    slot.running =
        AccountStep(outcome_, simulations_->State(i), max_steps_, slot.result, slot.hash);
    if (slot.video) slot.video->Add(slot.result);
  }

  void Collect(const Group& group, EvaluationResult& result, const EpisodeCallback& on_episode) {
    for (const int i : group.deciding) {
      Slot& slot = slots_[i];
      if (slot.running) continue;
      slot.result.hash = slot.hash.value();
      slot.result.seconds = mjp::Now() - slot.begin;
      if (slot.result.valid) slot.result.smoothness = slot.smoothness.Value();
      if (slot.video) result.videos.push_back(slot.video->Close());
      on_episode(slot.result);
      result.episodes.push_back(slot.result);
    }
  }

  const Task& task_;
  const EvaluationOptions& options_;
  const DecisionCallback on_decision_;
  std::unique_ptr<mjp::Policy> policy_;
  std::vector<Slot> slots_;
  std::unique_ptr<BatchSimulations> simulations_;
  const int max_steps_, action_steps_, kept_;
  const std::optional<mjp::TemporalEnsemble> ensemble_;
  const std::optional<mjp::EventReplanning> replanning_;
  std::vector<Group> groups_;
  std::vector<int> pending_;  // indices of the episodes to run, of which
  size_t next_ = 0;           // these have begun
  mjp::PolicyOutput output_;
  StageStatistics stages_;
  LoopTimes loop_;
  StepOutcome outcome_;
  std::vector<int> moving_;
  std::vector<double> actions_;  // (moving_, action_dim)
  std::vector<float> prefix_;    // of the next input, as PolicyInput has it
  std::vector<int> prefix_steps_;
  std::vector<float> start_;
  std::vector<float> ahead_;  // of a Decision
};

}  // namespace

mjp::EventReplanning::Rule RuleOf(const EvaluationOptions& options,
                                  const mjp::PolicyConfig& config) {
  return mjp::ResolveRule(config, options.action_steps, options.replan_beyond,
                          options.replan_after);
}

int ResolveActionSteps(const EvaluationOptions& options, const mjp::PolicyConfig& config) {
  const int most = config.horizon - config.FirstAction();
  const int steps = options.action_steps > 0 ? options.action_steps : config.DecisionSteps();
  if (steps > most) {
    throw mjp::Error(mjp::ExitCode::kUsage, "--action-steps " + std::to_string(steps) +
                                                ": a chunk of this checkpoint has only " +
                                                std::to_string(most) + " actions to execute");
  }
  if (config.temporal_ensemble && steps != 1) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--action-steps " + std::to_string(steps) +
                         ": this checkpoint ensembles the chunks of all control steps, so that "
                         "each has to make one; leave it out");
  }
  return steps;
}

int ResolveBatch(const EvaluationOptions& options) {
  if (options.through == Through::kPlugin) return 1;
  return std::min(options.policy.batch, std::max(1, options.episodes));
}

int ResolveMaxSteps(const EvaluationOptions& options, const Task& task) {
  return options.max_steps > 0 ? options.max_steps : task.max_steps();
}

EpisodeResult NewEpisode(const Task& task, int index, uint32_t seed) {
  EpisodeResult episode;
  episode.index = index;
  episode.seed = seed;
  for (const std::string& name : task.measures()) episode.measures.push_back({name});
  return episode;
}

bool AccountStep(const StepOutcome& outcome, std::span<const double> state, int max_steps,
                 EpisodeResult& result, StateHash& hash) {
  ++result.steps;
  for (const double value : state) hash.Add(value);
  if (!outcome.failure.empty()) {
    result.valid = false;
    result.reason = outcome.failure;
    return false;
  }
  for (size_t m = 0; m < result.measures.size(); ++m) {
    TaskMeasure& measure = result.measures[m];
    measure.final = outcome.measures[m];
    measure.max = std::max(measure.max, measure.final);
  }
  result.sum_reward += outcome.reward;
  result.max_reward = std::max(result.max_reward, outcome.reward);
  if (result.success_step < 0 && outcome.success) result.success_step = result.steps;
  const bool reached = result.success_step >= 0 && outcome.enough;
  return !reached && !outcome.lost && result.steps < max_steps;
}

std::vector<int> ShardIndices(const EvaluationOptions& options) {
  std::vector<int> indices;
  for (int i = options.shard_index; i < options.episodes; i += options.shard_count) {
    indices.push_back(i);
  }
  return indices;
}

std::unique_ptr<Evaluation> MakeEvaluation(const Task& task, const EvaluationOptions& options,
                                           std::unique_ptr<mjp::Policy> policy, size_t episodes,
                                           const DecisionCallback& on_decision) {
  if (options.through == Through::kPlugin)
    return MakePluginEvaluation(task, options, std::move(policy));
  return std::make_unique<BatchEvaluation>(task, options, std::move(policy), episodes, on_decision);
}

EvaluationResult Evaluate(const Task& task, const EvaluationOptions& options,
                          std::unique_ptr<mjp::Policy> policy, const std::vector<int>& pending,
                          const EpisodeCallback& on_episode, const std::atomic<bool>& stop,
                          const DecisionCallback& on_decision) {
  return MakeEvaluation(task, options, std::move(policy), pending.size(), on_decision)
      ->Run(pending, on_episode, stop);
}

}  // namespace mjp::app

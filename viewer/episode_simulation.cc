#include "viewer/episode_simulation.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "kernels/error.h"
#include "policy/checkpoint.h"
#include "policy/data_folders.h"
#include "policy/normalizer.h"
#include "policy/random_checkpoint.h"
#include "task/coverage.h"
#include "task/raster_source.h"
#include "task/reset.h"

namespace pusht {
namespace {

// keys of samples lie beyond every decision of an episode
constexpr uint32_t kSampleKeys = 1u << 20;

}  // namespace

std::shared_ptr<const dp::Checkpoint> OpenCheckpoint(const std::string& directory) {
  if (!directory.empty()) return dp::LoadCheckpoint(directory);
  const std::string shipped = "pusht_image";
  for (const std::filesystem::path& assets : dp::DataFolders("assets")) {
    const std::filesystem::path path = assets / shipped;
    std::error_code error;
    if (std::filesystem::exists(path / "config.json", error)) {
      return dp::LoadCheckpoint(path.string());
    }
  }
  return dp::NamedNetwork("compact");
}

EpisodeSimulation::EpisodeSimulation(ModelPtr model,
                                     std::shared_ptr<const dp::Checkpoint> checkpoint,
                                     const dp::PolicyOptions& options, uint32_t seed)
    : scene_(model.get()) {
  model->opt.disableflags |= mjDSBL_AUTORESET;  // as evaluations have it: what diverges is seen
  SetModel(std::move(model));
  SetPolicy(std::move(checkpoint), options);
  Restart(seed);
}

void EpisodeSimulation::SetCheckpoint(const std::string& directory) {
  const std::shared_ptr<const dp::Checkpoint> checkpoint = OpenCheckpoint(directory);
  dp::PolicyOptions options;
  options.sampler.kind = checkpoint->config.scheduler.kind;
  SetPolicy(checkpoint, options);
}

void EpisodeSimulation::SetPolicy(std::shared_ptr<const dp::Checkpoint> checkpoint,
                                  dp::PolicyOptions options) {
  options.timing = dp::TimingDetail::kSteps;
  std::unique_ptr<dp::Policy> policy = dp::Policy::Create(checkpoint, options);
  auto observer = std::make_unique<Observer>(options_, policy->config(), scene_);
  const int action_steps = ResolveActionSteps(options_, policy->config());
  auto info = std::make_shared<PolicyInfo>();
  info->random = checkpoint->sha256.starts_with("random");
  info->checkpoint = info->random
                         ? std::string("random weights")
                         : std::filesystem::path(checkpoint->directory).filename().string();
  info->description = policy->Description();
  info->options = policy->options();
  info->horizon = policy->config().horizon;
  info->n_obs_steps = policy->config().n_obs_steps;
  info->action_steps = action_steps;
  info->action_dim = policy->config().action_dim;
  if (!policy->config().cameras.empty()) {
    info->picture_width = info->picture_height = dp::kPictureSize;
  }
  info->has_keypoints = KeypointFinder::Has(policy->config());
  info->on_table = true;
  const bool first = policy_ == nullptr;
  // the observer refers to the policy's config: both change together
  observer_ = std::move(observer);
  policy_ = std::move(policy);
  checkpoint_ = std::move(checkpoint);
  SetKeypointCheckpoint(checkpoint_);
  info_ = std::move(info);
  action_steps_ = action_steps;
  EditLog().clear();
  ended_ = nullptr;
  if (!first) Restart(result_.seed);
}

void EpisodeSimulation::Restart(uint32_t seed) {
  result_ = EpisodeResult();
  result_.seed = seed;
  hash_ = StateHash();
  finished_ = disturbed_ = unexplained_ = false;
  substep_ = 0;
  moments_.clear();
  scene_.SetStart(BenchmarkStart(seed), data_.get());
  for (mjWarningStat& warning : data_->warning) warning = {};
  Keep();
  history_.assign(policy_->config().n_obs_steps, moments_.back().observed);
}

void EpisodeSimulation::Keep() {
  Moment moment;
  moment.physics = SavePhysics();
  moment.observed.state = scene_.Read(data_.get());
  moment.observed.qpos.assign(data_->qpos, data_->qpos + model_->nq);
  moment.result = result_;
  moment.hash = hash_;
  moment.coverage = static_cast<float>(Coverage(moment.observed.state));
  moments_.push_back(std::move(moment));
}

void EpisodeSimulation::Seek(int step) {
  step = std::clamp(step, 0, static_cast<int>(moments_.size()) - 1);
  moments_.resize(step + 1);
  const Moment& moment = moments_.back();
  RestorePhysics(moment.physics);
  result_ = moment.result;
  hash_ = moment.hash;
  substep_ = 0;
  finished_ = unexplained_ = false;
  const int n = policy_->config().n_obs_steps;
  for (int i = 0; i < n; ++i) history_[i] = moments_[std::max(0, step - (n - 1) + i)].observed;
  // a decision that was due here is taken again, with the same result
  DecisionLog& log = EditLog();
  std::erase_if(log, [&](const auto& d) { return d->seed == result_.seed && d->step >= step; });
  result_.decisions = (step + action_steps_ - 1) / action_steps_;
}

std::shared_ptr<DecisionRecord> EpisodeSimulation::Decide() {
  auto record = std::make_shared<DecisionRecord>();
  const double begin = dp::Now();
  observer_->Clear();
  observer_->Add(history_, result_.seed, result_.steps, static_cast<uint32_t>(result_.decisions));
  const dp::PolicyInput input = observer_->Input();
  const double observed = dp::Now();
  dp::PolicyTrace trace;
  // on a GPU a trace takes the place of the captured graph: there the policy is asked again, later
  unexplained_ = tracing_ && policy_->options().backend == dp::Backend::kCuda;
  output_.trace = tracing_ && !unexplained_ ? &trace : nullptr;
  policy_->Infer(input, output_);
  output_.trace = nullptr;
  const double decided = dp::Now();
  record->times = output_.times;
  record->times[dp::Stage::kScene] = {begin, observed};
  record->backend = info_->options.backend;
  record->seed = result_.seed;
  record->decision = result_.decisions++;
  record->step = result_.steps;
  record->first_action = policy_->config().FirstAction();
  record->count = action_steps_;
  record->qpos = history_.back().qpos;
  record->scenes.assign(input.scenes.begin(), input.scenes.end());
  AddKeypoints(*record);
  record->actions = output_.actions;
  KeepDenoising(trace, *record);
  const State& state = history_.back().state;
  record->agent = {static_cast<float>(state.agent_x), static_cast<float>(state.agent_y)};
  record->looking = dp::Now() - decided;
  return record;
}

void EpisodeSimulation::KeepDenoising(dp::PolicyTrace& trace, DecisionRecord& record) const {
  record.denoising = std::move(trace.x_steps);
  dp::Unnormalize(checkpoint_->stats.action, 2, record.denoising);
}

// What a decision of this episode was made from, with the noise of decision `decision`.
dp::PolicyInput EpisodeSimulation::Question(const DecisionRecord& record, uint32_t decision) {
  std::vector<Snapshot> history(history_.size());
  const int n = static_cast<int>(history.size());
  for (int i = 0; i < n; ++i) {
    history[i] = moments_[std::max(0, record.step - (n - 1) + i)].observed;
  }
  observer_->Clear();
  observer_->Add(history, record.seed, record.step, decision);
  return observer_->Input();
}

void EpisodeSimulation::UseIdleTime() {
  if (!std::exchange(unexplained_, false) || log().empty()) return;
  auto record = std::make_shared<DecisionRecord>(*log().back());
  dp::PolicyTrace trace;
  dp::PolicyOutput output;
  output.trace = &trace;
  policy_->Infer(Question(*record, static_cast<uint32_t>(record->decision)), output);
  KeepDenoising(trace, *record);
  EditLog().back() = std::move(record);
}

void EpisodeSimulation::Sample(int count) {
  if (log().empty() || log().back()->seed != result_.seed) return;
  auto record = std::make_shared<DecisionRecord>(*log().back());
  dp::PolicyOutput output;
  for (int i = 0; i < count; ++i) {
    const size_t had = record->samples.size() / (2 * info_->horizon);
    const uint32_t decision = kSampleKeys * static_cast<uint32_t>(had + 1) + record->decision;
    policy_->Infer(Question(*record, decision), output);
    record->samples.insert(record->samples.end(), output.actions.begin(), output.actions.end());
  }
  EditLog().back() = std::move(record);
}

void EpisodeSimulation::Advance() {
  if (finished_) return;
  if (substep_ == 0) {
    const bool due = result_.steps % action_steps_ == 0;
    const std::shared_ptr<DecisionRecord> taken = due ? Decide() : nullptr;
    const DecisionRecord& decision = due ? *taken : *log().back();
    const int k = decision.first_action + result_.steps - decision.step;
    const double begin = dp::Now();
    scene_.SetTarget(decision.actions[2 * k], decision.actions[2 * k + 1], data_.get());
    const double applied = dp::Now();
    if (due) {
      taken->times[dp::Stage::kApply] = {begin, applied};
      AddToLog(taken);
    }
  }
  StepPhysics();
  if (++substep_ == kSubsteps) FinishControlStep();
}

std::string EpisodeSimulation::Failure() const {
  for (const int kind : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC}) {
    if (data_->warning[kind].number > 0) return "the physics diverged";
  }
  return "";
}

void EpisodeSimulation::KeepEpisode() {
  std::vector<EpisodeRow> rows = ended_ ? *ended_ : std::vector<EpisodeRow>();
  const auto same = [this](const EpisodeRow& row) { return row.seed == result_.seed; };
  if (disturbed_ || std::any_of(rows.begin(), rows.end(), same)) return;
  rows.push_back(
      {result_.seed, result_.success(), result_.max_reward, result_.steps, hash_.value()});
  ended_ = std::make_shared<std::vector<EpisodeRow>>(std::move(rows));
}

void EpisodeSimulation::FinishControlStep() {
  substep_ = 0;
  AddPhysicsTime();
  const State state = scene_.Read(data_.get());
  finished_ = !ScoreStep(options_, state, Failure(), result_, hash_);
  Keep();
  std::rotate(history_.begin(), history_.begin() + 1, history_.end());
  history_.back() = moments_.back().observed;
  if (finished_) KeepEpisode();
}

void EpisodeSimulation::Fill(SimSnapshot& snapshot) const {
  Simulation::Fill(snapshot);
  snapshot.seed = result_.seed;
  snapshot.decisions = result_.decisions;
  snapshot.success = result_.success();
  snapshot.hash = hash_.value();
  snapshot.max_coverage = result_.max_coverage;
  snapshot.score = result_.max_reward;
  auto coverage = std::make_shared<std::vector<float>>();
  for (const Moment& moment : moments_) coverage->push_back(moment.coverage);
  snapshot.coverage = std::move(coverage);
  snapshot.episodes = ended_;
}

}  // namespace pusht

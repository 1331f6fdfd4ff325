#include "viewer/simulation.h"

#include <algorithm>
#include <filesystem>

#include "kernels/error.h"
#include "kernels/rasterise.h"
#include "policy/checkpoint.h"
#include "policy/data_folders.h"
#include "policy/normalizer.h"
#include "policy/random_checkpoint.h"
#include "task/coverage.h"
#include "task/raster_source.h"
#include "task/reset.h"

namespace pusht {
namespace {

constexpr size_t kMostDecisions = 512;  // kept in the log
// keys of samples lie beyond every decision of an episode
constexpr uint32_t kSampleKeys = 1u << 20;

ModelPtr CopyWithoutAutoReset(const mjModel* model) {
  ModelPtr copy(mj_copyModel(nullptr, model));
  if (!copy) throw dp::EnvironmentError("MuJoCo cannot copy the model");
  copy->opt.disableflags |= mjDSBL_AUTORESET;
  return copy;
}

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

Simulation::Simulation(std::shared_ptr<const mjModel> model,
                       std::shared_ptr<const dp::Checkpoint> checkpoint,
                       const dp::PolicyOptions& options, uint32_t seed)
    : model_(std::move(model)),
      own_model_(CopyWithoutAutoReset(model_.get())),
      scene_(own_model_.get()),
      data_(MakeData(own_model_.get())),
      log_(std::make_shared<DecisionLog>()) {
  mjv_defaultPerturb(&perturb_);
  SetPolicy(std::move(checkpoint), options);
  Restart(seed);
}

void Simulation::SetPolicy(std::shared_ptr<const dp::Checkpoint> checkpoint,
                           const dp::PolicyOptions& options) {
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
  const bool first = policy_ == nullptr;
  // the observer refers to the policy's config: both change together
  observer_ = std::move(observer);
  policy_ = std::move(policy);
  checkpoint_ = std::move(checkpoint);
  info_ = std::move(info);
  action_steps_ = action_steps;
  log_ = std::make_shared<DecisionLog>();
  if (!first) Restart(result_.seed);
}

void Simulation::Restart(uint32_t seed) {
  result_ = EpisodeResult();
  result_.seed = seed;
  hash_ = StateHash();
  finished_ = disturbed_ = false;
  substep_ = 0;
  moments_.clear();
  scene_.SetStart(BenchmarkStart(seed), data_.get());
  for (mjWarningStat& warning : data_->warning) warning = {};
  Keep();
  history_.assign(policy_->config().n_obs_steps, moments_.back().observed);
}

void Simulation::Keep() {
  Moment moment;
  moment.physics.resize(mj_stateSize(own_model_.get(), mjSTATE_INTEGRATION));
  mj_getState(own_model_.get(), data_.get(), moment.physics.data(), mjSTATE_INTEGRATION);
  moment.observed.state = scene_.Read(data_.get());
  moment.observed.qpos.assign(data_->qpos, data_->qpos + own_model_->nq);
  moment.result = result_;
  moment.hash = hash_;
  moment.coverage = static_cast<float>(Coverage(moment.observed.state));
  moments_.push_back(std::move(moment));
}

DecisionLog& Simulation::EditLog() {
  auto copy = std::make_shared<DecisionLog>(*log_);
  DecisionLog& log = *copy;
  log_ = std::move(copy);
  return log;
}

void Simulation::Seek(int step) {
  step = std::clamp(step, 0, static_cast<int>(moments_.size()) - 1);
  moments_.resize(step + 1);
  const Moment& moment = moments_.back();
  mj_setState(own_model_.get(), data_.get(), moment.physics.data(), mjSTATE_INTEGRATION);
  mj_forward(own_model_.get(), data_.get());
  mj_setState(own_model_.get(), data_.get(), moment.physics.data(), mjSTATE_INTEGRATION);
  result_ = moment.result;
  hash_ = moment.hash;
  substep_ = 0;
  finished_ = false;
  const int n = policy_->config().n_obs_steps;
  for (int i = 0; i < n; ++i) history_[i] = moments_[std::max(0, step - (n - 1) + i)].observed;
  // a decision that was due here is taken again, with the same result
  DecisionLog& log = EditLog();
  std::erase_if(log, [&](const auto& d) { return d->seed == result_.seed && d->step >= step; });
  result_.decisions = (step + action_steps_ - 1) / action_steps_;
}

void Simulation::SetPerturb(const PerturbCommand& perturb) {
  mjv_defaultPerturb(&perturb_);
  if (perturb.body <= 0 || perturb.body >= own_model_->nbody) return;
  perturb_.select = perturb.body;
  perturb_.active = perturb.active;
  std::copy(perturb.position.begin(), perturb.position.end(), perturb_.refselpos);
  std::copy(perturb.rotation.begin(), perturb.rotation.end(), perturb_.refquat);
  std::copy(perturb.local.begin(), perturb.local.end(), perturb_.localpos);
  perturb_.localmass = perturb.mass;
}

std::vector<uint8_t> Simulation::Frames() const {
  if (policy_->config().cameras.empty()) return {};
  std::vector<uint8_t> frames(history_.size() * dp::kPictureBytes);
  for (size_t i = 0; i < history_.size(); ++i) {
    const dp::FlatScene scene = ToFlatScene(history_[i].state);
    dp::RasteriseCpu(&scene, 1, &frames[i * dp::kPictureBytes]);
  }
  return frames;
}

void Simulation::Decide() {
  auto record = std::make_shared<DecisionRecord>();
  const double begin = dp::Now();
  observer_->Clear();
  observer_->Add(history_, result_.seed, result_.steps, static_cast<uint32_t>(result_.decisions));
  const dp::PolicyInput input = observer_->Input();
  const double observed = dp::Now();
  dp::PolicyTrace trace;
  output_.trace = tracing_ ? &trace : nullptr;
  policy_->Infer(input, output_);
  output_.trace = nullptr;
  record->times = output_.times;
  record->times[dp::Stage::kScene] = {begin, observed};
  record->seed = result_.seed;
  record->decision = result_.decisions++;
  record->step = result_.steps;
  record->first_action = policy_->config().FirstAction();
  record->count = action_steps_;
  record->qpos = history_.back().qpos;
  record->frames = Frames();
  record->actions = output_.actions;
  record->denoising = std::move(trace.x_steps);
  dp::Unnormalize(checkpoint_->stats.action, 2, record->denoising);
  const State& state = history_.back().state;
  record->agent = {static_cast<float>(state.agent_x), static_cast<float>(state.agent_y)};
  DecisionLog& log = EditLog();
  if (log.size() >= kMostDecisions) log.erase(log.begin());
  log.push_back(std::move(record));
}

void Simulation::Sample(int count) {
  if (log_->empty() || log_->back()->seed != result_.seed) return;
  auto record = std::make_shared<DecisionRecord>(*log_->back());
  std::vector<Snapshot> history(history_.size());
  const int n = static_cast<int>(history.size());
  for (int i = 0; i < n; ++i) {
    history[i] = moments_[std::max(0, record->step - (n - 1) + i)].observed;
  }
  dp::PolicyOutput output;
  for (int i = 0; i < count; ++i) {
    const size_t had = record->samples.size() / (2 * info_->horizon);
    observer_->Clear();
    observer_->Add(history, record->seed, record->step,
                   kSampleKeys * static_cast<uint32_t>(had + 1) + record->decision);
    policy_->Infer(observer_->Input(), output);
    record->samples.insert(record->samples.end(), output.actions.begin(), output.actions.end());
  }
  EditLog().back() = std::move(record);
}

void Simulation::Advance() {
  if (finished_) return;
  const bool due = substep_ == 0 && result_.steps % action_steps_ == 0;
  if (due) Decide();
  const DecisionRecord& decision = *log_->back();
  if (substep_ == 0) {
    const int k = decision.first_action + result_.steps - decision.step;
    const double begin = dp::Now();
    scene_.SetTarget(decision.actions[2 * k], decision.actions[2 * k + 1], data_.get());
    if (due) {
      auto record = std::make_shared<DecisionRecord>(decision);
      record->times[dp::Stage::kApply] = {begin, dp::Now()};
      EditLog().back() = std::move(record);
    }
  }
  const double begin = dp::Now();
  if (perturb_.select > 0) {
    mju_zero(data_->xfrc_applied, 6 * own_model_->nbody);
    mjv_applyPerturbForce(own_model_.get(), data_.get(), &perturb_);
    disturbed_ |= perturb_.active != 0;
  } else if (disturbed_) {
    mju_zero(data_->xfrc_applied, 6 * own_model_->nbody);
  }
  mj_step(own_model_.get(), data_.get());
  if (substep_ == 0) physics_time_ = {begin, begin};
  physics_time_.end += dp::Now() - begin;
  if (++substep_ == kSubsteps) FinishControlStep();
}

void Simulation::AddPhysicsTime() {
  auto record = std::make_shared<DecisionRecord>(*log_->back());
  dp::StageTimes::Span& span = record->times[dp::Stage::kPhysics];
  if (span.end == 0) span = {physics_time_.begin, physics_time_.begin};
  span.end += physics_time_.end - physics_time_.begin;
  EditLog().back() = std::move(record);
}

std::string Simulation::Failure() const {
  for (const int kind : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC}) {
    if (data_->warning[kind].number > 0) return "the physics diverged";
  }
  return "";
}

void Simulation::FinishControlStep() {
  substep_ = 0;
  AddPhysicsTime();
  const State state = scene_.Read(data_.get());
  finished_ = !ScoreStep(options_, state, Failure(), result_, hash_);
  Keep();
  std::rotate(history_.begin(), history_.begin() + 1, history_.end());
  history_.back() = moments_.back().observed;
}

void Simulation::Fill(SimSnapshot& snapshot) const {
  snapshot.seed = result_.seed;
  snapshot.step = result_.steps;
  snapshot.substep = substep_;
  snapshot.decisions = result_.decisions;
  snapshot.time = data_->time;
  snapshot.finished = finished_;
  snapshot.success = result_.success();
  snapshot.disturbed = disturbed_;
  snapshot.hash = hash_.value();
  snapshot.max_coverage = result_.max_coverage;
  snapshot.score = result_.max_reward;
  snapshot.qpos.assign(data_->qpos, data_->qpos + own_model_->nq);
  auto coverage = std::make_shared<std::vector<float>>();
  for (const Moment& moment : moments_) coverage->push_back(moment.coverage);
  snapshot.coverage = std::move(coverage);
  snapshot.log = log_;
  snapshot.policy = info_;
}

}  // namespace pusht

#include "viewer/simulation/episode_simulation.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/data_folders.h"
#include "base/error.h"
#include "policy/act/temporal_ensemble.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "tasks/pusht/coverage.h"
#include "tasks/pusht/evaluation/judge.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/pictures/drawn_scene.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/pusht/pictures/raster_source.h"

namespace mjp::app {
namespace {

// Whether its pictures are those that the rasteriser draws of the joints alone. A model without the
// camera is left to the rasteriser, which says so.
bool ShowsTheBenchmark(const mjModel& model) {
  const int camera = mj_name2id(&model, mjOBJ_CAMERA, "top");
  return camera < 0 || DifferenceFromDrawn(&model, camera).empty();
}

}  // namespace

std::shared_ptr<const mjp::Checkpoint> OpenCheckpoint(const std::string& directory) {
  if (!directory.empty()) return mjp::LoadCheckpoint(directory);
  const std::string shipped = "pusht_image";
  for (const std::filesystem::path& assets : mjp::DataFolders("assets")) {
    const std::filesystem::path path = assets / shipped;
    std::error_code error;
    if (std::filesystem::exists(path / "config.json", error)) {
      return mjp::LoadCheckpoint(path.string());
    }
  }
  return mjp::NamedNetwork("compact");
}

EpisodeSimulation::EpisodeSimulation(ModelPtr model,
                                     std::shared_ptr<const mjp::Checkpoint> checkpoint,
                                     const mjp::PolicyOptions& options, uint32_t seed)
    : scene_(model.get()) {
  model->opt.disableflags |= mjDSBL_AUTORESET;  // as evaluations have it: what diverges is seen
  SetModel(std::move(model));
  SetPolicy(std::move(checkpoint), options);
  Restart(seed);
}

void EpisodeSimulation::SetCheckpoint(const std::string& directory) {
  const std::shared_ptr<const mjp::Checkpoint> checkpoint = OpenCheckpoint(directory);
  SetPolicy(checkpoint, {});
}

void EpisodeSimulation::SetPolicy(std::shared_ptr<const mjp::Checkpoint> checkpoint,
                                  mjp::PolicyOptions options) {
  options.timing = mjp::TimingDetail::kSteps;
  options.scene_drawer = &mjp::FlatSceneDrawer();
  const int action_steps = ResolveActionSteps(EvaluationOptions(), checkpoint->config);
  options.sampler.hold_noise = mjp::ResolveHoldNoise(options.sampler, *checkpoint, action_steps);
  std::unique_ptr<mjp::Policy> policy = mjp::Policy::Create(checkpoint, options);
  // the policy sees what the model shows, whatever that is
  options_.renderer = ShowsTheBenchmark(*model_) ? RendererKind::kRaster : RendererKind::kMujoco;
  auto observer =
      std::make_unique<Observer>(options_.renderer, Conditions(), policy->config(), scene_);
  std::optional<mjp::EventReplanning> replanning =
      mjp::ReplanningOf(policy->config(), RuleOf(EvaluationOptions(), policy->config()),
                        action_steps, 0, "replan_beyond", mjp::ExitCode::kBadInput);
  const std::shared_ptr<PolicyInfo> info =
      UsePolicy(std::move(checkpoint), policy->options(), policy->Description(), action_steps);
  info->on_table = true;
  info_ = info;
  const bool first = policy_ == nullptr;
  // the observer refers to the policy's config: both change together
  observer_ = std::move(observer);
  policy_ = std::move(policy);
  action_steps_ = action_steps;
  replanning_ = std::move(replanning);
  EditLog().clear();
  ended_ = nullptr;
  if (!first) Restart(result_.seed);
}

void EpisodeSimulation::Restart(uint32_t seed) {
  result_ = NewEpisode(task_, 0, seed);
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
  const double begin = mjp::Now();
  observer_->Clear();
  observer_->Add(history_, result_.seed, result_.steps, static_cast<uint32_t>(result_.decisions));
  const mjp::PolicyInput input = observer_->Input();
  const double observed = mjp::Now();
  mjp::PolicyTrace trace;
  // on a GPU a trace takes the place of the captured graph: there the policy is asked again, later
  unexplained_ = tracing_ && policy_->options().backend == mjp::Backend::kCuda;
  output_.trace = tracing_ && !unexplained_ ? &trace : nullptr;
  policy_->Infer(input, output_);
  output_.trace = nullptr;
  const double decided = mjp::Now();
  record->times = output_.times;
  record->times[mjp::Stage::kScene] = {begin, observed};
  record->backend = info_->options.backend;
  record->seed = result_.seed;
  record->decision = result_.decisions;
  record->step = result_.steps;
  record->first_action = policy_->config().FirstAction();
  record->count = action_steps_;
  record->qpos = history_.back().qpos;
  KeepObservation(input, *record);
  record->drawer = policy_->options().scene_drawer;
  AddKeypoints(*record);
  record->actions = output_.actions;
  const bool follows = !log().empty() && log().back()->seed == record->seed &&
                       log().back()->step + action_steps_ == record->step;
  if (replanning_ && follows) {
    const DecisionRecord& before = *log().back();
    record->chunk_age = replanning_->Choose(before.actions, before.chunk_age, record->actions);
  }
  if (const auto ensemble = mjp::EnsembleOf(policy_->config())) {
    const int folded = follows ? record->decision : 0;
    ensemble->Fold(follows ? log().back()->actions : record->actions, folded, record->actions);
    record->shares = SharesOf(folded + 1);
  }
  KeepDenoising(trace, *record);
  const State& state = history_.back().state;
  record->agent = {static_cast<float>(state.agent_x), static_cast<float>(state.agent_y)};
  record->looking = mjp::Now() - decided;
  return record;
}

bool EpisodeSimulation::AskAgain(const DecisionRecord& record, uint32_t noise,
                                 mjp::PolicyOutput& output) {
  std::vector<Snapshot> history(history_.size());
  const int n = static_cast<int>(history.size());
  for (int i = 0; i < n; ++i) {
    history[i] = moments_[std::max(0, record.step - (n - 1) + i)].observed;
  }
  observer_->Clear();
  observer_->Add(history, record.seed, record.step, noise);
  policy_->Infer(observer_->Input(), output);
  return true;
}

void EpisodeSimulation::Advance() {
  if (finished_) return;
  if (substep_ == 0) {
    const bool due = result_.steps % action_steps_ == 0;
    const std::shared_ptr<DecisionRecord> taken = due ? Decide() : nullptr;
    const DecisionRecord& decision = due ? *taken : *log().back();
    const int k = decision.first_action + result_.steps - decision.step;
    const double begin = mjp::Now();
    scene_.SetTarget(decision.actions[2 * k], decision.actions[2 * k + 1], data_.get());
    const double applied = mjp::Now();
    if (due) {
      taken->times[mjp::Stage::kApply] = {begin, applied};
      AddToLog(taken);
      ++result_.decisions;
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

void EpisodeSimulation::FinishControlStep() {
  substep_ = 0;
  AddPhysicsTime();
  const State state = scene_.Read(data_.get());
  StepOutcome outcome;
  JudgeStep(options_, state, Failure(), outcome);
  finished_ = !AccountStep(outcome, ToNumbers(state), task_.max_steps(), result_, hash_);
  Keep();
  std::rotate(history_.begin(), history_.begin() + 1, history_.end());
  history_.back() = moments_.back().observed;
  if (finished_) KeepEpisode(result_, hash_);
}

void EpisodeSimulation::Fill(SimSnapshot& snapshot) const {
  Simulation::Fill(snapshot);
  snapshot.decisions = result_.decisions;
  snapshot.success = result_.success();
  snapshot.hash = hash_.value();
  snapshot.max_coverage = result_.measures.at(0).max;
  snapshot.score = result_.max_reward;
  auto coverage = std::make_shared<std::vector<float>>();
  for (const Moment& moment : moments_) coverage->push_back(moment.coverage);
  snapshot.coverage = std::move(coverage);
}

}  // namespace mjp::app

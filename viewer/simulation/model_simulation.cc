#include "viewer/simulation/model_simulation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "plugin/instances.h"
#include "plugin/state.h"
#include "tasks/evaluation/hosted_failure.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/physics/scene.h"
#include "viewer/stage_summary.h"

namespace mjp::app {
namespace {

constexpr size_t kMostMoments = 6000;  // control steps that one can go back
constexpr size_t kMostScores = 600;    // control steps shown
constexpr int kMostGeoms = 500;        // of decoration
constexpr double kPeriod = 0.1;        // seconds of a control step where there is no policy

// MuJoCo's last warning, which is where the plugin says why it stopped; all of them in the
// terminal.
class Warnings {
 public:
  static void Listen() {
    mju_user_warning = [](const char* text) {
      std::fprintf(stderr, "WARNING: %s\n", text);
      const std::lock_guard<std::mutex> lock(mutex_);
      last_ = text;
    };
  }
  static std::string Last() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_;
  }

 private:
  static inline std::mutex mutex_;
  static inline std::string last_;
};

// Of a decision that was made before and remembered, what is new is put beside what is not.
void CloseGaps(mjp::StageTimes& times) {
  const double begin = times[mjp::Stage::kPrepare].begin, end = times[mjp::Stage::kFetch].end;
  mjp::StageTimes::Span &render = times[mjp::Stage::kRender], &apply = times[mjp::Stage::kApply];
  render = {begin - (render.end - render.begin), begin};
  apply = {end, end + (apply.end - apply.begin)};
}

}  // namespace

ModelSimulation::ModelSimulation(const std::string& file, const SimulationRequest& request)
    : file_(file) {
  Warnings::Listen();
  seed_ = request.seed;
  Load({request.checkpoint, request.overrule});
}

void ModelSimulation::SceneDeleter::operator()(mjvScene* scene) const {
  mjv_freeScene(scene);
  delete scene;
}

void ModelSimulation::Load(const Choice& choice) {
  const auto made = std::make_shared<Made>();
  mjp::PolicyMakers makers;
  makers.directory = choice.checkpoint;
  makers.make = [made, choice](const std::shared_ptr<const mjp::Checkpoint>& checkpoint,
                               const mjp::PolicyOptions& attributes) {
    mjp::PolicyOptions options = attributes;
    choice.overrule(options);
    if (options.sampler.hold_noise == 0) options.sampler.hold_noise = attributes.sampler.hold_noise;
    options.timing = mjp::TimingDetail::kSteps;
    options.scene_drawer = attributes.scene_drawer;
    auto policy = mjp::Policy::Create(checkpoint, options);
    *made = {checkpoint, policy->options(), policy->Description()};
    return policy;
  };
  makers_.Set(makers);
  SetModel(LoadModel(file_));
  choice_ = choice;
  made_ = made;
  explainer_ = nullptr;
  const std::vector<int> instances = mjp::PolicyInstances(model_.get());
  instance_ = instances.empty() ? -1 : instances[0];
  policy_ = PolicyIn(data_.get());
  const auto scores = mjp::ScoresOf(model_.get());
  score_ = scores.empty() ? mjp::Score() : scores[0].second;
  if (score_) score_.check(model_.get());
  task_ = TaskEpisode::Open(file_, model_.get());
  const double period = policy_ ? policy_->config().period : kPeriod;
  substeps_ =
      task_ ? task_->substeps() : std::max(1, static_cast<int>(std::lround(period / timestep())));
  scene_.reset(new mjvScene);
  mjv_defaultScene(scene_.get());
  mjv_makeScene(model_.get(), scene_.get(), kMostGeoms);
  DescribePolicy();
  Restart(seed_);
}

mjp::PolicyInstance* ModelSimulation::PolicyIn(const mjData* data) const {
  if (instance_ < 0) return nullptr;
  mjp::PolicyInstance* policy = mjp::FindInstance(data, instance_);
  if (!policy) throw mjp::BadInput(Warnings::Last());
  return policy;
}

void ModelSimulation::DescribePolicy() {
  if (policy_) {
    info_ =
        UsePolicy(made_->checkpoint, made_->options, made_->description, policy_->action_steps());
    return;
  }
  checkpoint_ = nullptr;
  auto info = std::make_shared<PolicyInfo>();
  info->description = "This model has no policy: plugin/README.md has the lines that add one.";
  info_ = std::move(info);
}

void ModelSimulation::SetOptions(const mjp::PolicyOptions& options) {
  const Choice before = choice_;
  try {
    Load({choice_.checkpoint, [options](mjp::PolicyOptions& o) { o = options; }});
  } catch (const std::exception&) {
    Load(before);
    throw;
  }
}

void ModelSimulation::SetCheckpoint(const std::string& directory) {
  if (!policy_) throw mjp::BadInput(info_->description);
  const Choice before = choice_;
  try {
    Load({directory, [](mjp::PolicyOptions&) {}});
  } catch (const std::exception&) {
    Load(before);
    throw;
  }
}

void ModelSimulation::Restart(uint32_t seed) {
  if (task_) {
    StartTask(seed);
  } else if (score_) {
    Scene(model_.get()).SetStart(BenchmarkStart(seed), data_.get());
  } else if (model_->nkey > 0) {
    mj_resetDataKeyframe(model_.get(), data_.get(), 0);
  } else {
    mj_resetData(model_.get(), data_.get());
  }
  seed_ = seed;
  mjp::SetEpisodeSeed(model_.get(), data_.get(), seed);
  step_ = substep_ = decisions_ = first_moment_ = 0;
  decided_ = 0;
  disturbed_ = under_way_ = unexplained_ = false;
  moments_.clear();
  scores_ = std::make_shared<std::vector<float>>();
  Keep();
}

void ModelSimulation::StartTask(uint32_t seed) {
  const TaskEpisode::Verdict before = task_->verdict();
  task_->Start(seed);
  try {
    if (task_->changes_model()) TakeModelOfStart();
  } catch (...) {
    task_->Start(seed_);
    task_->Resume(before);
    throw;
  }
  task_->start().CopyState(model_.get(), data_.get());
}

void ModelSimulation::TakeModelOfStart() {
  std::shared_ptr<mjModel> model(CopyOfModel(model_.get()));  // the window reads the one it has
  task_->start().CopyLook(model.get());
  makers_.Use();
  DataPtr data = MakeData(model.get());
  policy_ = PolicyIn(data.get());
  data_ = std::move(data);  // the one before still needs its model
  model_ = std::move(model);
  question_ = nullptr;
}

void ModelSimulation::Keep() {
  Moment moment{SavePhysics(), 0, {}};
  if (score_) moment.score = static_cast<float>(score_.read(model_.get(), data_.get()));
  if (task_) {
    moment.verdict = task_->verdict();
    moment.score = static_cast<float>(moment.verdict.reward);
  }
  before_.assign(data_->qpos, data_->qpos + model_->nq);
  moments_.push_back(std::move(moment));
  if (moments_.size() > kMostMoments) {
    moments_.pop_front();
    ++first_moment_;
  }
  if (!score_ && !task_) return;
  const auto begin =
      moments_.size() > kMostScores ? moments_.end() - kMostScores : moments_.begin();
  auto scores = std::make_shared<std::vector<float>>();
  std::transform(begin, moments_.end(), std::back_inserter(*scores),
                 [](const Moment& m) { return m.score; });
  scores_ = std::move(scores);
}

void ModelSimulation::Seek(int step) {
  step = std::clamp(step, first_moment_, step_);
  moments_.resize(step - first_moment_ + 1);
  RestorePhysics(moments_.back().physics);
  if (task_) task_->Resume(moments_.back().verdict);
  moments_.pop_back();
  step_ = step;
  substep_ = 0;
  decided_ = 0;
  under_way_ = unexplained_ = false;
  decisions_ = static_cast<int>(mjp::PolicyDecisions(model_.get(), data_.get()));
  DecisionLog& log = EditLog();
  const auto later = [&](const auto& d) { return d->seed == seed_ && d->step >= step; };
  if (std::erase_if(log, later) > 0) question_ = nullptr;
  Keep();
}

void ModelSimulation::Advance() {
  if (finished()) return;
  const double begin = mjp::Now();
  StepPhysics();
  if (policy_) {
    if (mjp::PolicyFailed(model_.get(), data_.get())) throw mjp::BadInput(Warnings::Last());
    NoteDecision(begin);
  }
  if (++substep_ == substeps_) FinishControlStep();
}

void ModelSimulation::NoteDecision(double step_began) {
  const mjp::HostReport report = policy_->Report(model_.get(), data_.get());
  const int decisions = static_cast<int>(report.decisions);
  if (under_way_) CompleteDecision();
  if (decisions == decisions_) return;
  decisions_ = decisions;
  const mjp::PolicyConfig& config = policy_->policy().config();
  question_ = std::make_unique<mjp::Decision>(policy_->Question(model_.get(), data_.get()));
  auto record = std::make_shared<DecisionRecord>();
  record->backend = made_->options.backend;
  record->seed = seed_;
  record->decision = decisions - 1;
  record->step = step_;
  record->first_action = config.FirstAction();
  record->count = policy_->action_steps();
  record->qpos = before_;
  record->asked = step_began;
  KeepObservation(question_->input(), *record);
  record->drawer = made_->options.scene_drawer;
  AddKeypoints(*record);
  AddToLog(std::move(record));
  under_way_ = true;
  CompleteDecision();
  // one that was remembered, or made beside the simulation, took none of the step's time
  const mjp::StageTimes& times = log().back()->times;
  if (times[mjp::Stage::kPrepare].begin >= step_began && !policy_->config().async) {
    decided_ += 1e-3 * RowMilliseconds(times, kDecisionRow);
  }
}

// Takes over the newest decision's chunk and times as soon as they are there.
void ModelSimulation::CompleteDecision() {
  if (log().empty() || policy_->Pending(model_.get(), data_.get())) return;
  const double begin = mjp::Now();
  const mjp::HostReport report = policy_->Report(model_.get(), data_.get());
  auto record = std::make_shared<DecisionRecord>(*log().back());
  record->times = report.times;
  if (record->times[mjp::Stage::kPrepare].begin < record->asked) CloseGaps(record->times);
  record->actions.assign(report.chunk.begin(), report.chunk.end());
  record->shares = SharesOf(report.chunks_in_a_row);
  unexplained_ = tracing_;
  record->looking = mjp::Now() - begin;
  EditLog().back() = std::move(record);
  under_way_ = false;
}

// By a policy of the viewer's own: the plugin's decisions stay as fast as they are.
bool ModelSimulation::AskAgain(const DecisionRecord&, uint32_t noise, mjp::PolicyOutput& output) {
  if (!question_) return false;
  if (!explainer_) explainer_ = mjp::Policy::Create(made_->checkpoint, made_->options);
  mjp::PolicyInput input = question_->input();
  mjp::NoiseKey key = input.keys[0];
  key.decision = noise;
  input.keys = {&key, 1};
  explainer_->Infer(input, output);
  return true;
}

void ModelSimulation::FinishControlStep() {
  substep_ = 0;
  ++step_;
  AddPhysicsTime(decided_);
  decided_ = 0;
  if (task_) {
    task_->Judge(model_.get(), data_.get(), HostedFailure(model_.get(), data_.get()));
    if (finished()) KeepEpisode(task_->verdict().result, task_->verdict().hash);
  }
  Keep();
}

void ModelSimulation::Fill(SimSnapshot& snapshot) const {
  Simulation::Fill(snapshot);
  snapshot.decisions = decisions_;
  snapshot.episode = task_ != nullptr;
  snapshot.coverage = scores_;
  if (!scores_->empty())
    snapshot.max_coverage = *std::max_element(scores_->begin(), scores_->end());
  if (task_) {
    const TaskEpisode::Verdict& verdict = task_->verdict();
    snapshot.score_name = "Reward";
    snapshot.solved_at = 0;
    snapshot.score = snapshot.max_coverage = verdict.result.max_reward;
    snapshot.success = verdict.result.success();
    snapshot.hash = verdict.hash.value();
  }
  mjvOption option;
  mjv_defaultOption(&option);
  scene_->ngeom = 0;
  for (int i = 0; i < model_->nplugin; ++i) {
    const mjpPlugin* plugin = mjp_getPluginAtSlot(model_->plugin[i]);
    if (plugin && plugin->visualize) {
      plugin->visualize(model_.get(), data_.get(), &option, scene_.get(), i);
    }
  }
  snapshot.decoration.assign(scene_->geoms, scene_->geoms + scene_->ngeom);
}

}  // namespace mjp::app

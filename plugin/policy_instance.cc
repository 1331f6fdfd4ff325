#include "plugin/policy_instance.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/text_stream.h"
#include "plugin/guard.h"
#include "plugin/model/model_folder.h"
#include "plugin/model/random_checkpoint_command.h"
#include "plugin/model/scope.h"
#include "plugin/notices.h"
#include "plugin/pictures/instance_pictures.h"
#include "plugin/pictures/pose.h"
#include "policy/checkpoint/network_model.h"
#include "policy/prefix/chunk_timing.h"

namespace mjp {
namespace {

Config ConfigOf(const mjModel* model, int instance) {
  Config config = InOwnScope(model, instance, Config::FromModel(model, instance));
  config.policy.timing = HostSensors::TimingOf(model, instance, config);
  return config;
}

std::shared_ptr<SharedPolicy> PolicyOf(const mjModel* model, const Config& config) {
  PolicyOptions options = config.policy;
  if (!config.cameras.empty()) options.scene_drawer = SceneDrawerOf(config.renderer);
  try {
    return GetSharedPolicy(config.checkpoint, ModelFolders(model), options, config.action_steps);
  } catch (const NoCheckpoint& error) {
    const std::string command = RandomCheckpointCommand(model, config, error.directory());
    if (command.empty()) throw;
    throw BadInput(std::string(error.what()) +
                   "; this writes one of random weights, to try the model: " + command);
  }
}

int ActionSteps(const Config& config, const PolicyConfig& policy) {
  const int most = policy.horizon - policy.FirstAction();
  if (config.action_steps > most) {
    throw BadInput("attribute action_steps is " + std::to_string(config.action_steps) +
                   ": a chunk of this checkpoint has only " + std::to_string(most) +
                   " actions to execute");
  }
  if (policy.temporal_ensemble && config.action_steps > 1) {
    throw BadInput("attribute action_steps is " + std::to_string(config.action_steps) +
                   ": this checkpoint ensembles the chunks of all control steps, so that each has "
                   "to make one; leave it out");
  }
  return config.action_steps > 0 ? config.action_steps : policy.DecisionSteps();
}

// Control steps until a decision acts.
int LatencyTicks(const mjModel* model, const Config& config) {
  return std::max(
      0, static_cast<int>(std::ceil((config.latency - 0.5 * model->opt.timestep) / config.period)));
}

StateShape ShapeOf(const mjModel* model, const Config& config, const PolicyConfig& policy) {
  StateShape shape;
  shape.history = policy.n_obs_steps;
  shape.observation = policy.state_dim + policy.environment_dim;
  shape.pose = policy.cameras.empty() ? 0 : PoseSize(model);
  shape.chunk = policy.horizon * policy.action_dim;
  shape.kept = KeptChunks(LatencyTicks(model, config), ActionSteps(config, policy));
  return shape;
}

void CheckSize(const char* attribute, const char* what, int given, int wanted) {
  if (given == wanted) return;
  throw BadInput("attribute " + std::string(attribute) + " gives " + std::to_string(given) +
                 " numbers: the checkpoint's " + what + " has " + std::to_string(wanted));
}

int FindLabel(const mjModel* model, const Config& config) {
  if (config.label.empty()) return -1;
  const int site = mj_name2id(model, mjOBJ_SITE, config.label.c_str());
  if (site >= 0) return site;
  throw BadInput("attribute label names \"" + config.label +
                 "\": the model has no site of that name");
}

}  // namespace

int PolicyInstance::StateSize(const mjModel* model, int instance) {
  const Config config = ConfigOf(model, instance);
  return ShapeOf(model, config, PolicyOf(model, config)->config()).Size();
}

PolicyInstance::PolicyInstance(const mjModel* model, int instance)
    : instance_(instance),
      trial_(WithinCompiler(model)),
      config_(ConfigOf(model, instance)),
      policy_(PolicyOf(model, config_)),
      shape_(ShapeOf(model, config_, policy_->config())),
      state_binding_(model, "state", config_.state, config_.state_map),
      environment_binding_(model, "environment", config_.environment, config_.environment_map),
      control_binding_(model, config_),
      units_(policy_->checkpoint().stats, state_binding_, environment_binding_, control_binding_),
      sensors_(model, instance, config_, policy_->config()),
      trail_(model, config_, control_binding_),
      label_(FindLabel(model, config_)),
      scores_(ScoresOf(model)),
      pictures_(MakePictures(model, instance, config_, *policy_)),
      action_steps_(ActionSteps(config_, policy_->config())),
      observation_(shape_.observation),
      pose_(shape_.pose),
      ensemble_(EnsembleOf(policy_->config())),
      replanning_(ReplanningOf(policy_->config(),
                               ResolveRule(policy_->config(), config_.action_steps,
                                           config_.replan_beyond, config_.replan_after),
                               action_steps_, LatencyTicks(model, config_),
                               "attribute replan_beyond", ExitCode::kBadInput)) {
  if (!config_.record.empty() && !trial_) {
    recording_ = std::make_unique<Recording>(model, instance, config_, policy_->config());
  }
  const PolicyConfig& policy = policy_->config();
  CheckSize("state", "observation.state", state_binding_.size(), policy.state_dim);
  CheckSize("environment", "observation.environment_state", environment_binding_.size(),
            policy.environment_dim);
  CheckSize("actuators", "action", control_binding_.action_size(), policy.action_dim);
  if (config_.policy.instruction.empty() && policy_->checkpoint().network->text_tokens() > 0) {
    throw BadInput("attribute instruction is missing: this policy reads as a text what to do");
  }
  config_.CheckTimestep(model);
  if (const int most = MostLatency(policy, action_steps_);
      config_.latency > most * config_.period) {
    throw BadInput("attribute latency is longer than the " + std::to_string(most) +
                   " control steps that a chunk lasts beyond its own decision");
  }
  if (model->plugin_statenum[instance] != shape_.Size()) {
    throw BadInput(
        "the model was compiled by another build of the plugin or with another checkpoint: "
        "compile it from its XML again");
  }
  CheckActuatorsAreFree(model);
  if (label_ >= 0) {
    for (const auto& [name, score] : scores_) score.check(model);
  }
  const Backend backend = policy_->backend();  // makes the policy: what it cannot do is said here
  if (pictures_ && backend == Backend::kCuda) {
    pictures_->KeepScenes(SceneDrawerOf(config_.renderer));
    pictures_->KeepOnGpu();
  }
  if (pictures_) NoticeLook(model, instance, policy_->checkpoint(), *pictures_);
}

// Two policies on one actuator: the one that is called last would win, and nobody would know.
void PolicyInstance::CheckActuatorsAreFree(const mjModel* model) const {
  for (const int other : PolicyInstances(model)) {
    if (other >= instance_) continue;  // that one finds this one
    const ControlBinding controls(model, ConfigOf(model, other));
    const std::string shared = control_binding_.SharedWith(model, controls);
    if (shared.empty()) continue;
    throw BadInput("attribute actuators of " + InstanceName(model, instance_) + " names \"" +
                   shared + "\", which " + InstanceName(model, other) +
                   " drives already: give each policy its own actuators");
  }
}

InstanceState PolicyInstance::StateOf(const mjModel* model, mjData* data) const {
  return InstanceState(shape_, data->plugin_state + model->plugin_stateadr[instance_]);
}

PolicyInput PolicyInstance::Question(const mjModel* model, mjData* data) {
  const InstanceState state = StateOf(model, data);
  PolicyInput input = MakeInput(model, state);
  if (!input.gpu_pictures.empty()) {
    input.gpu_pictures = {};
    input.frames = pictures_->Frames(model, Poses(state));
  }
  return input;
}

void PolicyInstance::Reset(mjtNum* state) {
  if (recording_) recording_->End();
  if (pictures_) pictures_->Forget();
  InstanceState(shape_, state).Clear(config_.seed);
}

// time is a sum of timesteps with rounding errors: a tick begins with the step nearest to it
int64_t PolicyInstance::Tick(const mjModel* model, double time) const {
  constexpr double kLargest = 1e15;
  const double tick = std::floor((time + 0.5 * model->opt.timestep) / config_.period);
  if (!std::isfinite(time)) throw BadInput("the simulation's time is not a finite number");
  if (!(std::abs(tick) < kLargest)) {
    TextWriter text;
    text << "the simulation's time is " << time << " s, more than " << kLargest
         << " control steps of " << config_.period << " s: start it nearer to 0";
    throw BadInput(text.str());
  }
  return static_cast<int64_t>(tick);
}

void PolicyInstance::Compute(const mjModel* model, mjData* data) {
  if (trial_) return;
  InstanceState state = StateOf(model, data);
  if (!state.Valid()) state.Clear(config_.seed);
  if (state.failed()) return;
  try {
    config_.CheckTimestep(model);  // a host may have changed it
    const int64_t tick = Tick(model, data->time);
    if (tick != state.tick()) Advance(model, data, tick, state);
    // by now the simulation needs it
    if (state.pending() && TookEffect(model, data, state)) FinishDecision(model, state);
    if (recording_ && !Ahead(model, data, state).empty()) recording_->Before(model, data);
    apply_.begin = Now();
    Apply(model, data, state);
    apply_.end = Now();
    units_.Controlled(model, instance_, data, Ahead(model, data, state));
    // a score refuses a model that was changed since
    sensors_.Write(Report(model, state), model, data);
  } catch (...) {
    state.set_failed();  // said once, not at every step
    throw;
  }
}

void PolicyInstance::Stepped(const mjModel* model, mjData* data) {
  if (recording_) recording_->After(model, data, StateOf(model, data).seed());
}

void PolicyInstance::Advance(const mjModel* model, mjData* data, int64_t tick,
                             InstanceState& state) {
  if (tick != state.tick() + 1) state.Forget();
  const int64_t left = state.chunks() == 0 ? 0 : state.chunk_tick() + action_steps_ - tick;
  if (left < shape_.history) {
    // a decision under way can be made again only while its observations are there
    if (state.pending()) FinishDecision(model, state);
    Observe(model, data, state);
  }
  if (left <= 0) BeginDecision(model, tick, state);
  state.set_tick(tick);
}

void PolicyInstance::Observe(const mjModel* model, mjData* data, InstanceState& state) {
  const std::span<mjtNum> observation(observation_);
  state_binding_.Read(data, observation.first(state_binding_.size()));
  environment_binding_.Read(data, observation.subspan(state_binding_.size()));
  units_.Observed(model, instance_, observation);
  if (pictures_) {
    ReadPose(model, data, pose_);
    render_.begin = Now();
    pictures_->Draw(model, data, pose_);
    render_.end = Now();
    state.set_look(pictures_->look());
  }
  state.PushObservation(observation_, pose_);
}

// Of the observations in `state`, oldest first.
std::vector<std::span<const mjtNum>> PolicyInstance::Poses(const InstanceState& state) const {
  std::vector<std::span<const mjtNum>> poses;
  for (int slot = 0; slot < shape_.history; ++slot) poses.push_back(state.pose(slot));
  return poses;
}

// The observations in `state` as the policy takes them; a view of members.
PolicyInput PolicyInstance::MakeInput(const mjModel* model, const InstanceState& state) {
  state_input_.clear();
  environment_input_.clear();
  for (int slot = 0; slot < shape_.history; ++slot) {
    const std::span<const mjtNum> observation = state.observation(slot);
    const auto split = observation.begin() + state_binding_.size();
    state_input_.insert(state_input_.end(), observation.begin(), split);
    environment_input_.insert(environment_input_.end(), split, observation.end());
  }
  key_ = {state.seed(), state.decisions() - 1};  // the pending one is counted already
  PolicyInput input;
  input.count = 1;
  if (pictures_) {
    const std::vector<std::span<const mjtNum>> poses = Poses(state);
    input.scenes = pictures_->Scenes(model, poses);
    if (input.scenes.empty()) input.gpu_pictures = pictures_->GpuPictures(model, poses);
    if (input.scenes.empty() && input.gpu_pictures.empty())
      input.frames = pictures_->Frames(model, poses);
  }
  input.state = state_input_;
  input.environment = environment_input_;
  input.keys = {&key_, 1};
  if (config_.policy.sampler.prefix) AddPrefix(LatencyTicks(model, config_), state, input);
  return input;
}

void PolicyInstance::BeginDecision(const mjModel* model, int64_t tick, InstanceState& state) {
  state.BeginChunk(tick);
  if (config_.async) {
    under_way_ = policy_->Prefetch(MakeInput(model, state));
    begun_ = state.AllButTick();
  } else {
    FinishDecision(model, state);
  }
}

// Gives the same chunk whether it was begun before, and wherever `state` has been copied to, but
// for pictures where only this instance has begun it and the model looks otherwise since.
void PolicyInstance::FinishDecision(const mjModel* model, InstanceState& state) {
  const Decision* begun = under_way_.decision();
  if (begun && begun_ == state.AllButTick()) {
    output_ = begun->Wait();
  } else {
    policy_->Infer(MakeInput(model, state), output_);
  }
  if (static_cast<int>(output_.actions.size()) != shape_.chunk) {
    throw Error(ExitCode::kBadInput, "the policy gave a chunk of the wrong size");
  }
  if (ensemble_ || replanning_) {
    const std::span<const mjtNum> numbers = state.previous_chunk();
    const std::vector<float> before(numbers.begin(), numbers.end());
    if (ensemble_) ensemble_->Fold(before, state.chunks_in_a_row() - 1, output_.actions);
    if (replanning_)
      state.set_chunk_age(replanning_->Choose(before, state.chunk_age(), output_.actions));
  }
  output_.times[Stage::kRender] = render_;
  state.FinishChunk(output_.actions);
}

// True once `latency` has passed since the observation that the current chunk answers, or the one
// `ago` decisions before it.
bool PolicyInstance::TookEffect(const mjModel* model, const mjData* data,
                                const InstanceState& state, int ago) const {
  const int64_t tick = state.chunk_tick() - int64_t{ago} * action_steps_;
  const double age = data->time - static_cast<double>(tick) * config_.period;
  return age + 0.5 * model->opt.timestep >= config_.latency;
}

// Actions are aligned with time: the one for tick t stands at t - chunk_tick, whichever chunk it
// is taken from. Until a chunk takes effect one before it goes on, or the control is held.
std::span<const mjtNum> PolicyInstance::Ahead(const mjModel* model, const mjData* data,
                                              const InstanceState& state) const {
  const PolicyConfig& policy = policy_->config();
  int ago = 0;
  while (ago < state.chunks() && !TookEffect(model, data, state, ago)) ++ago;
  if (ago >= state.chunks()) return {};
  const std::span<const mjtNum> chunk = state.chunk(ago);
  const int64_t step = state.tick() - state.chunk_tick() + ago * action_steps_;
  const int64_t last = policy.horizon - 1;
  const size_t row = std::clamp<int64_t>(policy.FirstAction() + step, 0, last);
  return chunk.subspan(row * policy.action_dim);
}

void PolicyInstance::Apply(const mjModel* model, mjData* data, const InstanceState& state) const {
  const std::span<const mjtNum> ahead = Ahead(model, data, state);
  if (!ahead.empty()) control_binding_.Write(ahead.first(control_binding_.action_size()), data);
}

HostReport PolicyInstance::Report(const mjModel* model, const InstanceState& state) {
  HostReport report;
  report.tick = state.tick();
  report.decisions = state.decisions();
  report.chunks_in_a_row = state.chunks_in_a_row();
  report.times = output_.times;
  report.times[Stage::kApply] = apply_;
  report.chunk = state.chunk();
  if (sensors_.has_view() && state.observed())
    report.picture = pictures_->Frame(model, state.pose(shape_.history - 1), state.look());
  return report;
}

void PolicyInstance::Visualize(const mjModel* model, mjData* data, mjvScene* scene) {
  if (trial_ || RenderingPolicyPicture()) return;
  const InstanceState state = StateOf(model, data);
  if (!state.Valid() || state.failed() || state.chunks() == 0) return;
  trail_.Draw(model, data, Ahead(model, data, state), scene);
  if (label_ >= 0) DrawLabel(LabelText(model, data, state), data->site_xpos + 3 * label_, scene);
}

// "coverage 0.83 | decision 12, 8.4 ms"
std::string PolicyInstance::LabelText(const mjModel* model, const mjData* data,
                                      const InstanceState& state) const {
  std::string text;
  char part[40];
  for (const auto& [name, score] : scores_) {
    try {
      std::snprintf(part, sizeof(part), "%s %.2f | ", name.c_str(), score.read(model, data));
    } catch (const Error&) {
      continue;  // of a model that was changed since: not to be said with every frame
    }
    text += part;
  }
  const double begin = output_.times[Stage::kPrepare].begin, end = output_.times[Stage::kFetch].end;
  std::snprintf(part, sizeof(part), "decision %u", state.decisions());
  text += part;
  if (end > begin) {
    std::snprintf(part, sizeof(part), ", %.1f ms", 1e3 * (end - begin));
    text += part;
  }
  return text;
}

}  // namespace mjp

#include "viewer/simulation/simulation.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "policy/act/temporal_ensemble.h"
#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/checkpoint/random_checkpoint.h"

namespace mjp::app {
namespace {

constexpr size_t kMostDecisions = 512;             // kept in the log
constexpr size_t kMostPictures = size_t{1} << 29;  // bytes, likewise
// the noise of samples lies beyond every decision of an episode
constexpr uint32_t kSampleNoise = 1u << 20;

}  // namespace

Simulation::Simulation() : info_(std::make_shared<PolicyInfo>()) { mjv_defaultPerturb(&perturb_); }

void Simulation::SetModel(ModelPtr model) {
  DataPtr data = MakeData(model.get());
  data_ = std::move(data);  // the one before still needs its model
  model_ = std::move(model);
  EditLog().clear();
  ended_ = nullptr;
  mjv_defaultPerturb(&perturb_);
}

void Simulation::SetPerturb(const PerturbCommand& perturb) {
  mjv_defaultPerturb(&perturb_);
  if (perturb.body <= 0 || perturb.body >= model_->nbody) return;
  perturb_.select = perturb.body;
  perturb_.active = perturb.active;
  std::copy(perturb.position.begin(), perturb.position.end(), perturb_.refselpos);
  std::copy(perturb.rotation.begin(), perturb.rotation.end(), perturb_.refquat);
  std::copy(perturb.local.begin(), perturb.local.end(), perturb_.localpos);
  perturb_.localmass = perturb.mass;
}

void Simulation::StepPhysics() {
  const double begin = mjp::Now();
  if (perturb_.select > 0) {
    mju_zero(data_->xfrc_applied, 6 * model_->nbody);
    mjv_applyPerturbForce(model_.get(), data_.get(), &perturb_);
    disturbed_ |= perturb_.active != 0;
  } else if (disturbed_) {
    mju_zero(data_->xfrc_applied, 6 * model_->nbody);
  }
  mj_step(model_.get(), data_.get());
  if (substep_ == 0) physics_seconds_ = 0;
  physics_seconds_ += mjp::Now() - begin;
}

void Simulation::AddPhysicsTime(double elsewhere) {
  if (log_.empty()) return;
  auto record = std::make_shared<DecisionRecord>(*log_.back());
  mjp::StageTimes::Span& span = record->times[mjp::Stage::kPhysics];
  const double applied = record->times[mjp::Stage::kApply].end;
  if (span.end == 0) span = {applied, applied};
  span.end += std::max(0.0, physics_seconds_ - elsewhere);
  EditLog().back() = std::move(record);
}

void Simulation::SetKeypoints(bool on) {
  finding_ = on;
  if (log_.empty()) return;
  auto record = std::make_shared<DecisionRecord>(*log_.back());
  AddKeypoints(*record);
  EditLog().back() = std::move(record);
}

std::shared_ptr<PolicyInfo> Simulation::UsePolicy(std::shared_ptr<const mjp::Checkpoint> checkpoint,
                                                  const mjp::PolicyOptions& options,
                                                  const std::string& description,
                                                  int action_steps) {
  const mjp::PolicyConfig& config = checkpoint->config;
  auto info = std::make_shared<PolicyInfo>();
  info->random = HasRandomWeights(*checkpoint);
  info->checkpoint = std::filesystem::path(checkpoint->directory).filename().string();
  info->description = description;
  info->options = options;
  info->samplers = checkpoint->network->sampler().kinds;
  info->horizon = config.horizon;
  info->n_obs_steps = config.n_obs_steps;
  info->action_steps = action_steps;
  info->action_dim = config.action_dim;
  info->has_keypoints = KeypointFinder::Has(*checkpoint);
  info->network = checkpoint;
  info->attended = mjp::AttendedPictures(*checkpoint);
  for (const mjp::CameraFeature& camera : config.cameras) info->cameras.push_back(camera.name);
  if (!config.cameras.empty()) {
    info->picture_width = config.cameras[0].width;
    info->picture_height = config.cameras[0].height;
  }
  checkpoint_ = std::move(checkpoint);
  finder_ = nullptr;
  return info;
}

void Simulation::KeepEpisode(const EpisodeResult& result, const StateHash& hash) {
  std::vector<EpisodeRow> rows = ended_ ? *ended_ : std::vector<EpisodeRow>();
  const auto same = [&](const EpisodeRow& row) { return row.seed == result.seed; };
  if (disturbed_ || std::any_of(rows.begin(), rows.end(), same)) return;
  rows.push_back({result.seed, result.success(), result.max_reward, result.steps, hash.value()});
  ended_ = std::make_shared<std::vector<EpisodeRow>>(std::move(rows));
}

void Simulation::KeepObservation(const mjp::PolicyInput& input, DecisionRecord& record) {
  record.state.assign(input.state.begin(), input.state.end());
  record.environment.assign(input.environment.begin(), input.environment.end());
  record.scenes.assign(input.scenes.begin(), input.scenes.end());
  if (record.scenes.empty()) record.frames.assign(input.frames.begin(), input.frames.end());
}

std::vector<float> Simulation::SharesOf(int chunks) const {
  const auto ensemble = mjp::EnsembleOf(checkpoint_->config);
  if (!ensemble || chunks < 1) return {};
  return ensemble->Shares(std::min(chunks, checkpoint_->config.horizon));
}

void Simulation::KeepDenoising(mjp::PolicyTrace& trace, DecisionRecord& record) const {
  record.denoising = std::move(trace.x_steps);
  mjp::Unnormalize(checkpoint_->stats.action, info_->action_dim, record.denoising);
  const auto residuals = trace.tensors.find("residuals");
  if (residuals != trace.tensors.end()) record.residuals = std::move(residuals->second.data);
}

void Simulation::UseIdleTime() {
  if (!std::exchange(unexplained_, false) || log_.empty()) return;
  auto record = std::make_shared<DecisionRecord>(*log_.back());
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  if (!AskAgain(*record, static_cast<uint32_t>(record->decision), output)) return;
  KeepDenoising(trace, *record);
  EditLog().back() = std::move(record);
}

void Simulation::Sample(int count) {
  if (log_.empty() || log_.back()->seed != seed()) return;
  auto record = std::make_shared<DecisionRecord>(*log_.back());
  const size_t numbers = size_t{1} * info_->action_dim * info_->horizon;
  mjp::PolicyOutput output;
  for (int i = 0; i < count; ++i) {
    const auto next = static_cast<uint32_t>(record->samples.size() / numbers + 1);
    if (!AskAgain(*record, kSampleNoise * next + record->decision, output)) return;
    record->samples.insert(record->samples.end(), output.actions.begin(), output.actions.end());
  }
  EditLog().back() = std::move(record);
}

void Simulation::AddKeypoints(DecisionRecord& record) {
  record.keypoints.clear();
  if (!finding_ || !checkpoint_ || !KeypointFinder::Has(*checkpoint_)) return;
  if (!finder_) finder_ = std::make_unique<KeypointFinder>(checkpoint_);
  // of the first camera
  const size_t size = size_t{3} * info_->picture_width * info_->picture_height;
  const std::vector<uint8_t> pictures = PicturesOf(record);
  std::vector<uint8_t> first;
  for (size_t at = 0; at + size <= pictures.size(); at += size * info_->cameras.size()) {
    const auto from = pictures.begin() + static_cast<ptrdiff_t>(at);
    first.insert(first.end(), from, from + static_cast<ptrdiff_t>(size));
  }
  record.keypoints = finder_->Find(first);
}

DecisionLog& Simulation::EditLog() {
  published_ = nullptr;
  return log_;
}

void Simulation::AddToLog(std::shared_ptr<const DecisionRecord> record) {
  DecisionLog& log = EditLog();
  const size_t most = kMostPictures / std::max<size_t>(1, record->frames.size());
  if (log.size() >= std::clamp<size_t>(most, 1, kMostDecisions)) log.erase(log.begin());
  log.push_back(std::move(record));
}

std::vector<mjtNum> Simulation::SavePhysics() const {
  std::vector<mjtNum> physics(mj_stateSize(model_.get(), mjSTATE_INTEGRATION));
  mj_getState(model_.get(), data_.get(), physics.data(), mjSTATE_INTEGRATION);
  return physics;
}

void Simulation::RestorePhysics(const std::vector<mjtNum>& physics) {
  mj_setState(model_.get(), data_.get(), physics.data(), mjSTATE_INTEGRATION);
  // what a push by hand looks at; no sensors, and so no policy
  mj_kinematics(model_.get(), data_.get());
  mj_comPos(model_.get(), data_.get());
}

void Simulation::Fill(SimSnapshot& snapshot) const {
  snapshot.model = model_;
  snapshot.seed = seed();
  snapshot.step = step();
  snapshot.substep = substep_;
  snapshot.period = period();
  snapshot.time = data_->time;
  snapshot.finished = finished();
  snapshot.disturbed = disturbed_;
  snapshot.qpos.assign(data_->qpos, data_->qpos + model_->nq);
  snapshot.mocap_pos.assign(data_->mocap_pos, data_->mocap_pos + 3 * model_->nmocap);
  snapshot.mocap_quat.assign(data_->mocap_quat, data_->mocap_quat + 4 * model_->nmocap);
  if (!published_) published_ = std::make_shared<DecisionLog>(log_);
  snapshot.log = published_;
  snapshot.episodes = ended_;
  snapshot.policy = info_;
}

}  // namespace mjp::app

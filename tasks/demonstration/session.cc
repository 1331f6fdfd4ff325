#include "tasks/demonstration/session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "tasks/task_code.h"

namespace mjp::app {
namespace {

RecordOptions OfAPerson(RecordOptions options) {
  options.by = "person";
  options.keep_all = true;
  return options;
}

int StepsOf(const RecordOptions& options, const TaskFile& file) {
  return options.steps > 0 ? options.steps : file.rules().steps();
}

uint32_t CheckedSeed(uint64_t seed) {
  if (seed <= UINT32_MAX) return static_cast<uint32_t>(seed);
  throw Error(ExitCode::kUsage, "there are no seeds beyond 2^32: record to another folder");
}

}  // namespace

RecordingSession::RecordingSession(RecordOptions options, std::shared_ptr<const TaskFile> file,
                                   const std::string& hand)
    : options_(OfAPerson(std::move(options))),
      file_(std::move(file)),
      writer_(options_, file_),
      world_(file_, MakeTaskCode(*file_)),
      showing_(world_, StepsOf(options_, *file_)),
      person_(*file_, hand),
      action_(static_cast<size_t>(world_.action_size())),
      seed_(CheckedSeed(writer_.next_seed())),
      kept_(writer_.episodes()) {
  if (!person_.has_hand() && mocap_bodies() > 0) mocap_body_ = 0;
  Begin();
}

RecordingSession::~RecordingSession() {
  if (saving_.valid()) saving_.wait();
}

void RecordingSession::Begin() {
  showing_.Begin(seed_);
  person_.Begin(seed_, world_.model(), world_.data());
  mocap_ = world_.MocapPoses();
  phase_ = Phase::kReady;
  within_ = false;
}

void RecordingSession::Next() {
  seed_ = CheckedSeed(uint64_t{seed_} + 1);
  Begin();
}

void RecordingSession::Again() { Begin(); }

void RecordingSession::Start() {
  if (phase_ == Phase::kReady) phase_ = Phase::kShowing;
}

void RecordingSession::Advance() {
  if (phase_ != Phase::kShowing) return;
  if (!within_) {
    person_.Act(world_.model(), world_.data(), action_);
    showing_.Act(action_, mocap_);
  }
  within_ = world_.Substep();
  if (!within_ && !showing_.Finish()) phase_ = Phase::kOver;
}

void RecordingSession::Rewind(int step) {
  if (phase_ == Phase::kReady) return;
  showing_.Rewind(std::min(step, this->step()));
  within_ = false;
  person_.Resume(world_.data());
  mocap_ = world_.MocapPoses();
  phase_ = Phase::kShowing;
}

void RecordingSession::Drag(const std::array<double, 3>& by) {
  if (mocap_body_ < 0) return person_.Drag(by);
  for (int k = 0; k < 3; ++k) mocap_[static_cast<size_t>(3 * mocap_body_ + k)] += by[k];
}

void RecordingSession::NextTarget() {
  if (++mocap_body_ >= mocap_bodies()) mocap_body_ = person_.has_hand() || targets() == 0 ? -1 : 0;
}

int RecordingSession::targets() const { return mocap_bodies() + (person_.has_hand() ? 1 : 0); }

std::string RecordingSession::target_name() const {
  if (mocap_body_ < 0) return person_.has_hand() ? person_.hand_name() : "";
  const mjModel* model = file_->model();
  int body = 0;
  while (model->body_mocapid[body] != mocap_body_) ++body;
  const char* name = mj_id2name(model, mjOBJ_BODY, body);
  return name ? name : "mocap body " + std::to_string(mocap_body_);
}

std::array<mjtNum, 3> RecordingSession::target() const {
  if (mocap_body_ < 0) return person_.target();
  const mjtNum* place = mocap_.data() + 3 * mocap_body_;
  return {place[0], place[1], place[2]};
}

double RecordingSession::reward() const {
  const std::vector<float>& rewards = showing_.shown().rewards;
  return rewards.empty() ? 0 : rewards.back();
}

double RecordingSession::score() const { return showing_.shown().result.max_reward; }

void RecordingSession::Keep() {
  CheckSaved();
  if (saving_.valid()) saving_.get();
  // a control step that has begun counts once it is over
  while (within_) Advance();
  if (step() == 0) return;
  if (!showing_.shown().result.valid) {
    throw BadInput("this episode cannot be kept: " + showing_.shown().result.reason);
  }
  saving_ =
      std::async(std::launch::async, [this, shown = showing_.shown()] { writer_.Save(shown); });
  Next();
}

void RecordingSession::CheckSaved() {
  if (!saving_.valid()) return;
  if (saving_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  saving_.get();
  kept_ = writer_.episodes();
}

void RecordingSession::Finish() {
  if (saving_.valid()) saving_.wait();
  CheckSaved();
  writer_.Finish();
}

}  // namespace mjp::app

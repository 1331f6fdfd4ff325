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
  Begin();
}

RecordingSession::~RecordingSession() {
  if (saving_.valid()) saving_.wait();
}

void RecordingSession::Begin() {
  showing_.Begin(seed_);
  person_.Begin(seed_, world_.model(), world_.data());
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
    showing_.Act(action_);
  }
  within_ = world_.Substep();
  if (!within_ && !showing_.Finish()) phase_ = Phase::kOver;
}

void RecordingSession::Rewind(int step) {
  if (phase_ == Phase::kReady) return;
  showing_.Rewind(std::min(step, this->step()));
  within_ = false;
  person_.Resume(world_.data());
  phase_ = Phase::kShowing;
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

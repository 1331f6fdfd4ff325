#include "viewer/diagnostics/attention.h"

#include <exception>
#include <utility>

namespace mjp::app {

Attention FindAttention(mjp::Policy& policy, std::shared_ptr<const DecisionRecord> decision) {
  Attention attention;
  attention.decision = std::move(decision);
  const std::vector<uint8_t> frames = PicturesOf(*attention.decision);
  const mjp::NoiseKey key;
  mjp::PolicyInput input;
  input.count = 1;
  input.frames = frames;
  input.state = attention.decision->state;
  input.environment = attention.decision->environment;
  input.keys = {&key, 1};
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  try {
    policy.Infer(input, output);
    attention.weights = std::move(trace.tensors.at(mjp::LastAttention(policy.checkpoint())).data);
  } catch (const std::exception& error) {
    attention.error = error.what();
  }
  return attention;
}

AttentionFinder::AttentionFinder() : thread_([this] { Run(); }) {}

AttentionFinder::~AttentionFinder() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void AttentionFinder::Ask(std::shared_ptr<const DecisionRecord> decision,
                          std::shared_ptr<const mjp::Checkpoint> checkpoint) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool again = last_.decision && last_.checkpoint == checkpoint &&
                       SameDecision(*last_.decision, *decision);
    if (again) return;
    open_ = last_ = {std::move(decision), std::move(checkpoint)};
  }
  wake_.notify_one();
}

std::shared_ptr<const Attention> AttentionFinder::Found() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return found_;
}

void AttentionFinder::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  answered_.wait(lock, [this] { return !open_.decision && !busy_; });
}

std::shared_ptr<const Attention> AttentionFinder::Answer(const Question& question) {
  auto attention = std::make_shared<Attention>();
  try {
    if (of_ != question.checkpoint) {
      mjp::PolicyOptions options;
      options.backend = mjp::Backend::kCpu;
      policy_ = mjp::Policy::Create(question.checkpoint, options);
      of_ = question.checkpoint;
    }
    *attention = FindAttention(*policy_, question.decision);
  } catch (const std::exception& error) {
    attention->decision = question.decision;
    attention->error = error.what();
  }
  attention->network = question.checkpoint;
  return attention;
}

void AttentionFinder::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || open_.decision; });
    if (stop_) return;
    const Question question = std::exchange(open_, {});
    busy_ = true;
    lock.unlock();
    std::shared_ptr<const Attention> found = Answer(question);
    lock.lock();
    found_ = std::move(found);
    busy_ = false;
    answered_.notify_all();
  }
}

}  // namespace mjp::app

#include "plugin/policies/shared_policy.h"

#include <utility>

#include "base/error.h"

namespace mjp {

UnderWay& UnderWay::operator=(UnderWay&& other) noexcept {
  Leave();
  decision_ = std::move(other.decision_);
  end_ = std::move(other.end_);
  generation_ = other.generation_;
  return *this;
}

// a future of std::async waits in its destructor
void UnderWay::Leave() {
  if (end_.valid() && generation_ != ForkGeneration()) {
    new std::future<void>(std::move(end_));  // the thread that would end it is the parent's
  }
  end_ = {};
}

SharedPolicy::SharedPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                           const PolicyOptions& options, Maker make, size_t remembered_decisions)
    : checkpoint_(std::move(checkpoint)),
      options_(options),
      make_(std::move(make)),
      remembered_(remembered_decisions),
      state_(new ProcessState(remembered_decisions, false)) {}

SharedPolicy::~SharedPolicy() {
  const ProcessState* state = state_;
  if (state->generation == ForkGeneration()) delete state;
}

SharedPolicy::ProcessState& SharedPolicy::StateOfThisProcess() {
  return OfThisProcess(state_, [this](const ProcessState& parents) {
    const bool had_gpu =
        parents.gpu_is_lost || (parents.options && parents.options->backend == Backend::kCuda);
    return std::make_unique<ProcessState>(remembered_, had_gpu);
  });
}

std::unique_ptr<Policy> SharedPolicy::Borrow() {
  ProcessState& state = StateOfThisProcess();
  if (state.gpu_is_lost) {
    throw EnvironmentError(
        "the policy runs on the GPU in the process that fork() made this one of, and CUDA does not "
        "survive fork(): start processes by spawn, or load the model in them alone");
  }
  PolicyOptions options = options_;
  {
    std::lock_guard lock(state.mutex);
    if (!state.idle.empty()) {
      std::unique_ptr<Policy> policy = std::move(state.idle.back());
      state.idle.pop_back();
      return policy;
    }
    options.device = state.device_ordinal;  // all on the GPU of the first one
  }
  return make_(checkpoint_, options);
}

void SharedPolicy::Return(std::unique_ptr<Policy> policy) {
  ProcessState& state = StateOfThisProcess();
  std::lock_guard lock(state.mutex);
  state.options = policy->options();
  state.device_ordinal = policy->device_ordinal();
  state.idle.push_back(std::move(policy));
}

void SharedPolicy::Make(Decision& decision) {
  try {
    PolicyOutput output;
    // not returned after an exception: its state is unknown then
    std::unique_ptr<Policy> policy = Borrow();
    policy->Infer(decision.input(), output);
    Return(std::move(policy));
    decision.Finish(std::move(output));
  } catch (...) {
    StateOfThisProcess().decisions.Forget(&decision);
    decision.Fail(std::current_exception());
  }
}

void SharedPolicy::Infer(const PolicyInput& input, PolicyOutput& output) {
  const auto [decision, added] = StateOfThisProcess().decisions.FindOrAdd(input);
  if (added) Make(*decision);
  output = decision->Wait();
}

UnderWay SharedPolicy::Prefetch(const PolicyInput& input) {
  const auto [decision, added] = StateOfThisProcess().decisions.FindOrAdd(input);
  std::future<void> end;
  try {
    if (added) {
      end = std::async(std::launch::async,
                       [self = shared_from_this(), decision = decision] { self->Make(*decision); });
    }
  } catch (...) {
    Make(*decision);  // no thread to be had, or no memory for one: now, then
  }
  return UnderWay(decision, std::move(end));
}

std::string SharedPolicy::Describe() {
  std::unique_ptr<Policy> policy = Borrow();
  std::string description = policy->Description();
  Return(std::move(policy));
  return description;
}

PolicyOptions SharedPolicy::Resolved() {
  ProcessState& state = StateOfThisProcess();
  {
    std::lock_guard lock(state.mutex);
    if (state.options) return *state.options;
  }
  Describe();
  std::lock_guard lock(state.mutex);
  return *state.options;
}

Backend SharedPolicy::backend() { return Resolved().backend; }

float SharedPolicy::temperature() { return Resolved().sampler.temperature.value_or(1.0f); }

int SharedPolicy::device_ordinal() {
  if (backend() != Backend::kCuda) return -1;
  ProcessState& state = StateOfThisProcess();
  std::lock_guard lock(state.mutex);
  return state.device_ordinal;
}

}  // namespace mjp

#include "tests/support/fake_policy.h"

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "plugin/policies/cache.h"
#include "policy/checkpoint/network_model.h"
#include "policy/pictures/gpu_picture.h"

namespace mjp_test {

// Nothing to load; one noise for each decision, as a diffusion policy has it.
class FakeNetwork final : public mjp::NetworkModel {
 public:
  FakeNetwork(int text_tokens, mjp::PictureLooks looks)
      : text_tokens_(text_tokens), looks_(std::move(looks)) {}

  void ListTensors(const mjp::TensorSource&, const VisitShape&) const override {}
  int64_t TakeTensors(mjp::TensorSource&) override { return 0; }
  void VisitTensors(const VisitTensor&) const override {}
  void AddConfig(mjp::Json&) const override {}
  std::vector<std::pair<std::string, std::string>> Describe() const override { return {}; }
  mjp::SamplerTraits sampler() const override {
    return {.kinds = {mjp::SamplerKind::kDdpm, mjp::SamplerKind::kDdim},
            .kind = mjp::SamplerKind::kDdpm,
            .steps = 100,
            .most_steps = 100,
            .noise_steps = 100,
            .parallel = true};
  }
  int text_tokens() const override { return text_tokens_; }
  mjp::PictureLooks trained_looks() const override { return looks_; }

 private:
  int text_tokens_;
  mjp::PictureLooks looks_;
};

class FakePolicy : public mjp::Policy {
 public:
  FakePolicy(std::shared_ptr<const mjp::Checkpoint> checkpoint, const mjp::PolicyOptions& options,
             FakePolicyLog* log)
      : Policy(std::move(checkpoint), options), log_(log) {}

  void Infer(const mjp::PolicyInput& input, mjp::PolicyOutput& output) override {
    if (input.count != 1 || input.keys.size() != 1)
      throw mjp::BadInput("fake: not one environment");
    SeenInput seen;
    seen.frames.assign(input.frames.begin(), input.frames.end());
    for (const auto& picture : input.gpu_pictures) {
      seen.gpu_pictures.emplace_back(picture->bytes());
      picture->Download(seen.gpu_pictures.back());
    }
    seen.scenes.assign(input.scenes.begin(), input.scenes.end());
    seen.state.assign(input.state.begin(), input.state.end());
    seen.environment.assign(input.environment.begin(), input.environment.end());
    seen.key = input.keys[0];
    seen.sha256 = checkpoint().sha256;
    seen.noise = mjp::NoiseNumber(options().sampler, seen.key.decision);
    {
      std::lock_guard lock(log_->mutex_);
      log_->seen_.push_back(seen);
    }
    output.actions = log_->act(seen);
  }
  std::string Description() const override { return "fake"; }

 private:
  FakePolicyLog* log_;
};

FakePolicyLog::FakePolicyLog() {
  config.type = "diffusion";
  config.state_dim = 2;
  config.action_dim = 2;
  act = [this](const SeenInput& seen) {
    std::vector<float> actions(config.horizon * config.action_dim);
    for (size_t i = 0; i < actions.size(); ++i) {
      actions[i] = 0.01f * i + 0.1f * seen.key.decision + 10.0f * (seen.key.seed % 7) +
                   (seen.state.empty() ? 0 : seen.state.back());
    }
    return actions;
  };
}

void FakePolicyLog::Install() {
  mjp::PolicyMakers makers;
  makers.load = [this](const std::string& directory) {
    ++loads;
    auto checkpoint = std::make_shared<mjp::Checkpoint>();
    checkpoint->config = config;
    checkpoint->stats = stats;
    checkpoint->network = std::make_shared<FakeNetwork>(text_tokens, looks);
    checkpoint->directory = directory;
    checkpoint->sha256 = sha256;
    checkpoint->files = files;
    checkpoint->files["model.safetensors"] = sha256;
    return checkpoint;
  };
  makers.make = [this](std::shared_ptr<const mjp::Checkpoint> checkpoint,
                       const mjp::PolicyOptions& options) {
    if (!refuse.empty()) throw mjp::Unsupported(refuse);
    std::lock_guard lock(mutex_);
    ++made;
    return std::make_unique<FakePolicy>(std::move(checkpoint), options, this);
  };
  makers.remembered_decisions = remembered;
  mjp::SetPolicyMakers(makers);
}

std::vector<SeenInput> FakePolicyLog::Take() {
  std::lock_guard lock(mutex_);
  return std::exchange(seen_, {});
}

}  // namespace mjp_test

// The diffusion transformer in the trainer: its differentiable twin against the definition in
// double precision and the policy's own encoder, its training, and what is refused.

#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/train/network/network.h"
#include "apps/train/recipe.h"
#include "base/error.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/dit/dit_model.h"
#include "policy/policy.h"
#include "tasks/pusht/planner/demonstrations.h"
#include "tests/policy/dit/dit_reference.h"
#include "tests/support/check_close.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using ::testing::HasSubstr;

ArchitectureOptions SmallDit(const std::string& objective) {
  ArchitectureOptions options;
  options.name = "dit";
  options.objective = objective;
  options.hidden = 32, options.layers = 2, options.heads = 2;
  options.stage_channels = {32, 32};
  options.stem_channels = 16;
  return options;
}

mjp_test::Matrix Numbers(const at::Tensor& values) {
  const at::Tensor dense = values.to(at::kDouble).contiguous();
  return {dense.const_data_ptr<double>(), dense.const_data_ptr<double>() + dense.numel()};
}

// A network whose parameters are all drawn, those too that begin as zeros.
class DitTwin : public ::testing::Test {
 protected:
  DitTwin()
      : policy_(MakeArchitecture(SmallDit("flow"))),
        parameters_(policy_, 12, 3, at::kCPU, at::kFloat),
        network_(policy_.config, parameters_, false, policy_.transformer()) {
    at::manual_seed(5);
    const c10::NoGradGuard no_grad;
    parameters_.master().add_(0.05 * at::randn({parameters_.size()}));
    parameters_.UpdateWorkingCopy();
    checkpoint_ = std::make_shared<Checkpoint>(parameters_.Export(policy_, parameters_.master()));
    checkpoint_->directory = "(of a test)";
  }

  Architecture policy_;
  Parameters parameters_;
  Network network_;
  std::shared_ptr<Checkpoint> checkpoint_;
};

TEST_F(DitTwin, DenoisesAsItsDefinitionSays) {
  const c10::NoGradGuard no_grad;
  const DitConfig& config = *policy_.dit;
  const int64_t rows = 5;
  const at::Tensor x = at::randn({rows, config.horizon, config.action_dim});
  const at::Tensor cond = at::randn({rows, config.CondDim()});
  const at::Tensor t = at::tensor({0.0f, 0.37f, 0.99f, 12.0f, 99.0f});
  const at::Tensor told = network_.Denoise(x, t, cond);
  for (int64_t r = 0; r < rows; ++r) {
    const mjp_test::Matrix expected = mjp_test::TrunkReference(
        DitOf(*checkpoint_).weights, config, Numbers(x[r]), t[r].item<double>(), Numbers(cond[r]));
    EXPECT_TRUE(mjp_test::CheckClose(Numbers(told[r]), expected, 1e-5)) << "row " << r;
  }
}

TEST_F(DitTwin, SeesWhatThePolicySees) {
  const c10::NoGradGuard no_grad;
  const DitConfig& config = *policy_.dit;
  const int64_t frames = config.n_obs_steps;
  const at::Tensor pixels = at::randint(256, {frames, 96, 96, 3}, at::kByte);
  const at::Tensor pictures =
      ((pixels.permute({0, 3, 1, 2}).to(at::kFloat) / 255 - 0.5) / 0.5).contiguous();
  const at::Tensor features = network_.Encode(pictures);
  PolicyOptions options;
  options.backend = Backend::kCpu;
  options.sampler.steps = 2;
  const std::vector<float> state = {256, 256, 256, 256};
  const std::vector<NoiseKey> keys = {{1, 1}};
  PolicyInput input;
  input.count = 1;
  input.frames = {pixels.const_data_ptr<uint8_t>(), static_cast<size_t>(pixels.numel())};
  input.state = state, input.keys = keys;
  PolicyOutput output;
  PolicyTrace trace;
  output.trace = &trace;
  Policy::Create(checkpoint_, options)->Infer(input, output);
  const int step = config.StepDim(), width = config.FeatureDim();
  for (int64_t f = 0; f < frames; ++f) {
    const auto begin = trace.global_cond.begin() + f * step + config.state_dim;
    EXPECT_TRUE(
        mjp_test::CheckClose(mjp_test::Matrix(begin, begin + width), Numbers(features[f]), 1e-4));
  }
}

class DitTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    DemonstrateOptions demonstrate;
    demonstrate.out = folder_ / "data";
    demonstrate.rows = demonstrate.stream.rows = 32;
    demonstrate.stream.planner.samples = 64;
    demonstrate.stream.planner.rounds = 2;
    std::ostringstream log;
    RunDemonstrate(demonstrate, log, never_);
  }

  TrainOptions Options(const std::string& objective, int64_t steps) const {
    TrainOptions options;
    options.out = folder_ / objective;
    options.device = "cpu";
    options.architecture = SmallDit(objective);
    options.data.folders = {folder_ / "data"};
    options.step.batch = 8;
    options.step.draws = 4;
    options.optimizer.learning_rate = 2e-3;
    options.optimizer.warmup_steps = 5;
    options.steps = steps;
    options.log_every = 10;
    return options;
  }

  bool Train(const TrainOptions& options) const {
    Ranks ranks(1);
    std::ostringstream progress;
    return mjp::app::Train(options, ranks, progress, never_);
  }

  mjp_test::TempDir folder_;
  std::atomic<bool> never_ = false;
};

TEST_F(DitTraining, LearnsByBothObjectives) {
  for (const std::string objective : {"diffusion", "flow"}) {
    ASSERT_TRUE(Train(Options(objective, 120)));
    std::ifstream log(folder_ / (objective + "/log.jsonl"));
    std::vector<double> losses;
    for (std::string line; std::getline(log, line);)
      losses.push_back(nlohmann::json::parse(line)["loss"]);
    ASSERT_EQ(losses.size(), 12u);
    EXPECT_LT(losses.back(), 0.8 * losses.front()) << objective;
    const auto checkpoint = LoadCheckpoint(folder_ / (objective + "/checkpoint"));
    EXPECT_EQ(checkpoint->config.type, kCompactDit);
    const SamplerTraits traits = checkpoint->network->sampler();
    EXPECT_EQ(traits.kind, objective == "flow" ? SamplerKind::kEuler : SamplerKind::kDdpm);
    EXPECT_FALSE(checkpoint->network->trained_looks().empty());
  }
}

TEST_F(DitTraining, GoesOnAsItBegan) {
  ASSERT_TRUE(Train(Options("flow", 10)));
  TrainOptions other = Options("diffusion", 20);
  other.out = folder_ / "flow";
  EXPECT_THAT(mjp_test::ErrorOf([&] { Train(other); }),
              HasSubstr("the run began with --objective flow, 2 heads, not epsilon"));
  other = Options("flow", 20);
  other.architecture.heads = 4;
  EXPECT_THAT(mjp_test::ErrorOf([&] { Train(other); }), HasSubstr("not flow, 4 heads"));
  EXPECT_TRUE(Train(Options("flow", 20)));
}

TEST_F(DitTraining, WhatIsNotOfIt) {
  TrainOptions options = Options("flow", 10);
  options.step.prefix_share = 0.5;
  EXPECT_THAT(mjp_test::ErrorOf([&] { Train(options); }), HasSubstr("--prefix-share"));
  ArchitectureOptions network = SmallDit("flow");
  network.unet_channels = {32};
  EXPECT_THAT(mjp_test::ErrorOf([&] { MakeArchitecture(network); }), HasSubstr("--unet-channels"));
  network = SmallDit("flow");
  network.heads = 3;
  EXPECT_THAT(mjp_test::ErrorOf([&] { MakeArchitecture(network); }), HasSubstr("--dit-heads"));
  network = SmallDit("flow");
  network.name = "compact";
  EXPECT_THAT(mjp_test::ErrorOf([&] { MakeArchitecture(network); }), HasSubstr("--objective flow"));
}

}  // namespace
}  // namespace mjp::app

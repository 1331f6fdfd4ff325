// Students of one pass: the trainer's teacher is the engine's, and a distillation of seconds on the
// CPU learns, stops and goes on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "apps/train/data/pictures.h"
#include "apps/train/distillation/distill.h"
#include "apps/train/distillation/teacher.h"
#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/policy.h"
#include "policy/unet/unet_model.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/pusht/pictures/raster_source.h"
#include "tests/support/check_close.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using testing::HasSubstr;

constexpr size_t kLimit = 64 << 20;

class DistillationTest : public ::testing::Test {
 protected:
  void SetUp() override { WriteTeacher(3); }

  // A policy of random weights, of widths that take seconds.
  void WriteTeacher(uint64_t seed) const {
    ArchitectureOptions architecture;
    architecture.unet_channels = {32, 64};
    architecture.stage_channels = {32, 32};
    architecture.stem_channels = 16;
    Architecture policy = MakeArchitecture(architecture);
    policy.config.trained_prefix = true;
    const Parameters parameters(policy, 1, seed, at::kCPU, at::kFloat);
    mjp::WriteCheckpoint(teacher_, parameters.Export(policy, parameters.master()),
                         mjp::WeightFormat::kF32);
  }

  TrainOptions Options(const std::string& name) const {
    TrainOptions options;
    options.out = folder_ / name;
    options.device = "cpu";
    options.step.batch = 4;
    options.step.draws = 2;
    options.rounds.episodes = 1;
    options.rounds.disturbed_episodes = 0;
    options.optimizer.warmup_steps = 2;
    options.optimizer.average_decay = 0.5;
    options.optimizer.learning_rate = 1e-3;
    options.data.threads = 1;
    options.steps = 4;
    options.log_every = 2;
    return options;
  }

  // Until the first line of progress that has `text`, or to the end.
  bool Distill(const TrainOptions& options, const std::string& text = "never") {
    class Watch : public std::stringbuf {
     public:
      Watch(std::string wanted, std::atomic<bool>& stop)
          : wanted_(std::move(wanted)), stop_(stop) {}
      int sync() override {
        if (str().find(wanted_) != std::string::npos) stop_ = true;
        return 0;
      }

     private:
      std::string wanted_;
      std::atomic<bool>& stop_;
    };
    std::atomic<bool> stop = false;
    Watch watch(text, stop);
    std::ostream progress(&watch);
    Ranks ranks(1);
    const bool complete = mjp::app::Distill(teacher_, options, ranks, progress, stop);
    progress_ = watch.str();
    return complete;
  }

  std::string Weights(const std::string& name) const {
    return ReadFile(folder_ / (name + "/checkpoint/model.safetensors"), kLimit);
  }

  mjp_test::TempDir folder_;
  const std::string teacher_ = folder_ / "teacher";
  std::string progress_;
};

const std::vector<float> kScenes = {100, 120, 250, 300, 0.5f, 104, 126, 251, 300, 0.52f};

// Stands for noise of a deviation of some `scale`.
std::vector<float> StartOf(const mjp::PolicyConfig& config, double scale) {
  std::vector<float> noise(size_t{1} * config.horizon * config.action_dim);
  for (size_t i = 0; i < noise.size(); ++i)
    noise[i] = static_cast<float>(scale * std::sin(0.7 * static_cast<double>(i)));
  return noise;
}

// The engine's actions from that start, pixels.
std::vector<float> ActionsOf(const std::shared_ptr<const mjp::Checkpoint>& checkpoint,
                             const mjp::SamplerOptions& sampler, double scale) {
  const std::vector<float> noise = StartOf(checkpoint->config, scale);
  const std::vector<float> state = {100, 120, 104, 126};
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.sampler = sampler;
  options.scene_drawer = &mjp::FlatSceneDrawer();
  mjp::PolicyInput input;
  input.count = 1;
  input.scenes = std::as_bytes(std::span(kScenes));
  input.state = state;
  input.x_start = noise;
  mjp::PolicyOutput output;
  mjp::Policy::Create(checkpoint, options)->Infer(input, output);
  return output.actions;
}

TEST_F(DistillationTest, TheTeacherIsTheEnginesPolicy) {
  constexpr int kSteps = 5;
  const auto checkpoint = mjp::LoadCheckpoint(teacher_);
  const mjp::PolicyConfig& config = checkpoint->config;
  const std::vector<float> expected = ActionsOf(checkpoint, {mjp::SamplerKind::kDdim, kSteps}, 1);
  const std::vector<float> noise = StartOf(config, 1);

  c10::InferenceMode inference;
  const Teacher teacher(checkpoint, kSteps, at::kCPU, at::kFloat);
  const at::Tensor states = at::tensor(kScenes).view({2, 5});
  const at::Tensor pictures = PreparePictures(
      DrawPictures(states), 2, mjp::UnetOf(*checkpoint).config.encoder, {}, at::kFloat);
  const at::Tensor cond =
      at::cat({NormalisePixels(states.narrow(1, 0, 2)), teacher.Encode(pictures)}, 1).view({1, -1});
  const at::Tensor made =
      teacher.Chunk(at::tensor(noise).view({1, config.horizon, config.action_dim}), cond)
          .contiguous();
  std::vector<float> actions(made.data_ptr<float>(), made.data_ptr<float>() + noise.size());
  mjp::Unnormalize(checkpoint->stats.action, config.action_dim, actions);
  EXPECT_TRUE(mjp_test::CheckClose(actions, expected, 0.05));
}

TEST_F(DistillationTest, AStoppedRunGoesOnToTheSameBits) {
  EXPECT_TRUE(Distill(Options("whole")));
  EXPECT_FALSE(Distill(Options("stopped"), "step 2"));
  EXPECT_NE(Weights("stopped"), Weights("whole"));
  EXPECT_TRUE(Distill(Options("stopped")));
  EXPECT_EQ(Weights("stopped"), Weights("whole"));
}

// Whether a round was added, or a stop kept it from being played.
TEST_F(DistillationTest, AStoppedRunKeepsTheRoundsOfItsStudent) {
  const auto options = [&](const std::string& name) {
    TrainOptions with_rounds = Options(name);
    with_rounds.rounds.count = 2;
    with_rounds.steps = 6;
    return with_rounds;
  };
  EXPECT_TRUE(Distill(options("whole")));
  for (const std::string at : {"step 2", "round 1", "step 4", "round 2"}) {
    SCOPED_TRACE(at);
    EXPECT_FALSE(Distill(options(at), at));
    EXPECT_TRUE(Distill(options(at)));
    for (const char* said : {"round 1: ", "round 2: "}) EXPECT_THAT(progress_, HasSubstr(said));
    EXPECT_EQ(Weights(at), Weights("whole"));
  }
}

// Also with fewer episodes than those rounds had.
TEST_F(DistillationTest, ALongerRunLearnsFromItsRoundsAtOnce) {
  TrainOptions options = Options("run");
  options.rounds.count = 1;
  options.rounds.episodes = 3;
  EXPECT_TRUE(Distill(options));
  options.rounds.episodes = 1;
  options.steps = 20;  // of which the round would be half
  EXPECT_TRUE(Distill(options));
  const size_t learnt = progress_.find("round 1: "), step = progress_.find("step 6 ");
  ASSERT_NE(step, std::string::npos) << progress_;
  EXPECT_LT(learnt, step) << progress_;
}

TEST_F(DistillationTest, TheStudentComesNearerAndDecidesInOnePass) {
  TrainOptions options = Options("run");
  options.steps = 60;
  options.log_every = 20;
  options.rounds.count = 1;
  EXPECT_TRUE(Distill(options));
  EXPECT_THAT(progress_,
              testing::AllOf(HasSubstr("the teacher: success"), HasSubstr("round 1: success")));
  std::istringstream log(ReadFile(folder_ / "run/log.jsonl", kLimit));
  std::vector<double> losses;
  for (std::string line; std::getline(log, line);) losses.push_back(Json::parse(line)["loss"]);
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_LT(losses[2], 0.8 * losses[0]);
  const auto student = mjp::LoadCheckpoint(folder_ / "run/checkpoint");
  EXPECT_EQ(mjp::ResolveSampler({}, *student).kind, mjp::SamplerKind::kOneStep);
  EXPECT_EQ(mjp::ResolveSampler({}, *student).steps, 1);
  EXPECT_EQ(mjp::UnetOf(*student).looks.at("observation.image"), RasterLook());
  EXPECT_FALSE(student->config.trained_prefix);  // as its teacher was
}

// A student's use is its teacher's but for what is given, and changes no weight.
TEST_F(DistillationTest, AStudentSaysHowItIsExecuted) {
  TrainOptions options = Options("plain");
  EXPECT_TRUE(Distill(options));
  options.out = folder_ / "said";
  options.architecture.execution = {.temperature = 0.5, .replan_every = 1, .replan_beyond = 25};
  EXPECT_TRUE(Distill(options));
  EXPECT_EQ(Weights("said"), Weights("plain"));
  const auto plain = mjp::LoadCheckpoint(folder_ / "plain/checkpoint");
  EXPECT_EQ(mjp::ResolveSampler({}, *plain).temperature, 1.0f);
  EXPECT_EQ(plain->config.DecisionSteps(), plain->config.n_action_steps);
  const auto said = mjp::LoadCheckpoint(folder_ / "said/checkpoint");
  EXPECT_EQ(mjp::ResolveSampler({}, *said).temperature, 0.5f);
  EXPECT_EQ(said->config.DecisionSteps(), 1);
  EXPECT_EQ(said->config.replan_beyond, 25);
  options.architecture.execution.replan_every = 8;  // no chunk could be left
  EXPECT_THROW(Distill(options), mjp::Error);
}

TEST_F(DistillationTest, GoesOnWithTheSameTeacherAlone) {
  TrainOptions options = Options("run");
  options.steps = 1;
  EXPECT_TRUE(Distill(options));
  const std::string weights = Weights("run");
  WriteTeacher(4);
  options.steps = 2;
  try {
    Distill(options);
    ADD_FAILURE() << "it went on";
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("was begun with other data"));
  }
  EXPECT_EQ(Weights("run"), weights);
}

TEST_F(DistillationTest, RefusesATeacherThatIsAStudent) {
  EXPECT_TRUE(Distill(Options("run")));
  std::atomic<bool> stop = false;
  std::ostringstream progress;
  Ranks ranks(1);
  try {
    mjp::app::Distill(folder_ / "run/checkpoint", Options("again"), ranks, progress, stop);
    ADD_FAILURE() << "it was taken";
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("is a student already"));
  }
}

}  // namespace
}  // namespace mjp::app

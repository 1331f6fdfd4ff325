#include "apps/train/imitation/run.h"

#include <ATen/Parallel.h>

#include <filesystem>
#include <iomanip>
#include <utility>

#include "apps/train/run_folder.h"
#include "base/error.h"
#include "base/folders.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/timing.h"

namespace mjp::app {
ImitationRun::ImitationRun(RecordedFrames frames, const ImitationShape& shape, const Json& data,
                           bool grows, const TrainOptions& options, Ranks& ranks,
                           const std::atomic<bool>& stop)
    : options_(options),
      stop_(stop),
      grows_(grows),
      device_(ChooseDevice(options.device, ranks)),
      stream_(device_),
      frames_(std::move(frames)),
      policy_(ImitationPolicy(options.architecture, shape, frames_)),
      parameters_(InitialImitationWeights(policy_, options.seed), device_,
                  device_.is_cuda() && !options.full_precision ? at::kBFloat16 : at::kFloat),
      network_(policy_.config, parameters_),
      optimizer_(parameters_, options.optimizer, ranks),
      logged_(Now()) {
  if (options.data.threads > 0) at::set_num_threads(options.data.threads);
  std::filesystem::create_directories(options.out);
  CheckBegun(options.out, data, {"horizon", "statistics", "content", "crop"});
  MakeStep();
  SeedGenerator(device_, options.seed);
  if (HasRunState(StatePath())) {
    done_ = LoadRunState(StatePath(), optimizer_, device_, options.architecture.prediction);
  }
  log_.emplace(options.out, done_.step);
}

void ImitationRun::MakeStep() {
  step_.reset();  // its frames, before those of the next one
  step_.emplace(
      policy_.config, policy_.stats, network_, frames_, parameters_, optimizer_,
      ImitationStepOptions{options_.step.batch, options_.step.draws, options_.step.augmentation});
  if (!grows_) frames_.pictures.clear();  // they are where the step is
}

void ImitationRun::Add(RecordedFrames frames) {
  if (policy_.config.scheduler.clip_sample) ClampActions(policy_.stats.action, frames);
  Append(frames, frames_);
  MakeStep();
}

void ImitationRun::ScoreBy(ScoreOptions score) {
  score.on_cpu = !device_.is_cuda();
  score_every_ = score.every;
  scorer_.emplace(score);
  scorer_->CheckFits(policy_.config, policy_.looks);  // now, and not after minutes of training
}

bool ImitationRun::Train(double until, std::ostream& progress) {
  progress << parameters_.size() << " parameters, " << frames_.frames() << " frames of "
           << frames_.begin.size() - 1 << " episodes, " << step_->samples()
           << " samples to train on, on " << device_ << ", from step " << done_.step << std::endl;
  clock_.Start();
  double saved = Now(), scored = done_.seconds;
  while (Progress() < until && !stop_) {
    optimizer_.SetStep(done_.step, Progress());
    step_->Run();
    ++done_.step;
    const bool border = done_.step % options_.log_every == 0;
    clock_.Step(border);
    if (border) Log(progress);
    if (Now() - saved > options_.save_every) {
      Save();
      saved = Now();
    }
    if (scorer_ && done_.seconds - scored > score_every_) {
      const double before = Now();
      Save();
      PlayScored(progress);
      saved = Now();
      clock_.Skip(saved - before);
      scored = done_.seconds;
    }
  }
  Save();
  const bool complete = !scorer_ || (!stop_ && PlayScored(progress));
  return complete && Progress() >= until;
}

double ImitationRun::Progress() const { return ShareDone(options_, done_); }

void ImitationRun::Save() const {
  // the state first: one that may not be saved leaves the checkpoint alone
  SaveRunState(StatePath(), optimizer_, done_, device_, options_.architecture.prediction);
  WriteCheckpoint(checkpoint(), parameters_.Export(policy_, optimizer_.average()),
                  WeightFormat::kF16);
}

void ImitationRun::Log(std::ostream& progress) {
  LogLine line;
  line.step = done_.step;
  line.seconds = done_.seconds;
  line.loss = step_->TakeLoss();
  const double now = Now();
  line.steps_per_second = static_cast<double>(options_.log_every) / (now - logged_);
  CheckLoss(line.loss, done_.step);
  line.validation_loss = step_->ValidationLoss();
  line.learning_rate = optimizer_.learning_rate();
  log_->Add(line);
  progress << "step " << line.step << std::fixed << std::setprecision(1) << "  " << 100 * Progress()
           << " %  loss " << std::setprecision(5) << line.loss;
  if (step_->held_out() > 0) progress << "  held out " << line.validation_loss;
  progress << std::setprecision(1) << "  " << line.steps_per_second << " steps/s"
           << std::defaultfloat << std::endl;
  logged_ = Now();
}

bool ImitationRun::PlayScored(std::ostream& progress) {
  const Score score = scorer_->Play(checkpoint(), stop_);
  logged_ = Now();
  if (stop_) return false;  // of some starts alone
  log_->Add(done_.step, done_.seconds, score);
  progress << "scored at step " << done_.step << ": success " << std::fixed << std::setprecision(1)
           << 100 * score.success << " % of " << score.episodes << ", reward "
           << std::setprecision(3) << score.reward << ", in " << std::setprecision(1)
           << score.seconds << " s" << std::defaultfloat << std::endl;
  return true;
}

}  // namespace mjp::app

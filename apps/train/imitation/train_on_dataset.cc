#include "apps/train/imitation/train_on_dataset.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <filesystem>
#include <iomanip>
#include <optional>
#include <string>
#include <thread>

#include "apps/train/imitation/log.h"
#include "apps/train/imitation/step.h"
#include "apps/train/optimisation/device.h"
#include "apps/train/run_state.h"
#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/timing.h"

namespace mjp::app {
namespace {

RecordedOptions DataOptionsOf(const ImitationOptions& imitation, const TrainOptions& options) {
  RecordedOptions data = imitation.data;
  data.resize_height = imitation.shape.resize_height;
  data.resize_width = imitation.shape.resize_width;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  data.threads = options.data.threads > 0 ? options.data.threads : cores;
  return data;
}

// What a run was begun with: a state does not go on with other data.
void CheckBegun(const std::string& out, const RecordedOptions& data, const RecordedFrames& frames) {
  const std::string path = out + "/data.json";
  Json now = {{"frames", frames.frames()}, {"fps", frames.fps}, {"validation", data.validation}};
  for (const CameraFeature& camera : frames.cameras) now["cameras"].push_back(camera.name);
  if (!std::filesystem::exists(out + "/state.safetensors")) {
    return WriteFileAtomically(path, now.dump(2) + "\n");
  }
  const Json before = ReadJson(path);
  if (before == now) return;
  throw BadInput(path + ": the run was begun with other data, " + before.dump() + ", now it is " +
                 now.dump() + "; go on with that, or give another --out");
}

class ImitationRun {
 public:
  ImitationRun(const ImitationOptions& imitation, const TrainOptions& options, Ranks& ranks,
               const std::atomic<bool>& stop)
      : options_(options),
        stop_(stop),
        device_(ChooseDevice(options.device, ranks)),
        stream_(device_),
        frames_(LoadRecordedFrames(DataOptionsOf(imitation, options), stop)),
        policy_(ImitationPolicy(options.architecture, imitation.shape, frames_)),
        parameters_(InitialImitationWeights(policy_, options.seed), device_,
                    device_.is_cuda() && !options.full_precision ? at::kBFloat16 : at::kFloat),
        network_(policy_.config, parameters_),
        optimizer_(parameters_, options.optimizer, ranks),
        step_(policy_.config, policy_.stats, network_, frames_, parameters_, optimizer_,
              {options.step.batch, options.step.draws, options.step.augmentation}) {
    frames_.pictures.clear();  // they are where the step is
    if (options.data.threads > 0) at::set_num_threads(options.data.threads);
    std::filesystem::create_directories(options.out);
    CheckBegun(options.out, imitation.data, frames_);
    SeedGenerator(device_, options.seed);
    if (std::filesystem::exists(StatePath())) {
      done_ = LoadRunState(StatePath(), optimizer_, device_, options.architecture.prediction);
    }
    log_.emplace(options.out, done_.step);
    if (imitation.score.task.empty()) return;
    ScoreOptions score = imitation.score;
    score.on_cpu = !device_.is_cuda();
    score.threads = DataOptionsOf(imitation, options).threads;
    score_every_ = score.every;
    scorer_.emplace(score);
  }

  bool Train(std::ostream& progress) {
    progress << parameters_.size() << " parameters, " << frames_.frames() << " frames of "
             << frames_.begin.size() - 1 << " episodes, " << step_.samples()
             << " samples to train on, on " << device_ << ", from step " << done_.step << std::endl;
    double begin = Now() - done_.seconds;
    double saved = Now(), scored = done_.seconds;
    bool measured = false;
    while (Progress() < 1 && !stop_) {
      optimizer_.SetStep(done_.step, Progress());
      step_.Run();
      ++done_.step;
      const bool border = done_.step % options_.log_every == 0;
      // what a GPU's libraries do first is not counted
      if (border && !measured) begin = Now() - done_.seconds;
      measured |= border;
      if (measured) done_.seconds = Now() - begin;
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
        begin += saved - before;  // no time of the training
        scored = done_.seconds;
      }
    }
    Save();
    if (scorer_ && !stop_) PlayScored(progress);
    return Progress() >= 1;
  }

 private:
  std::string StatePath() const { return options_.out + "/state.safetensors"; }

  double Progress() const {
    if (options_.steps > 0) {
      return static_cast<double>(done_.step) / static_cast<double>(options_.steps);
    }
    return done_.seconds / options_.seconds;
  }

  void Save() const {
    WriteCheckpoint(options_.out + "/checkpoint", parameters_.Export(policy_, optimizer_.average()),
                    WeightFormat::kF16);
    SaveRunState(StatePath(), optimizer_, done_, device_, options_.architecture.prediction);
  }

  void Log(std::ostream& progress) {
    LogLine line;
    line.step = done_.step;
    line.seconds = done_.seconds;
    line.loss = step_.TakeLoss();
    const double now = Now();
    line.steps_per_second = static_cast<double>(options_.log_every) / (now - logged_);
    if (!std::isfinite(line.loss)) {
      throw Error(ExitCode::kRetryable,
                  "the loss is not finite at step " + std::to_string(done_.step) +
                      "; start the same command again, or with a lower --learning-rate");
    }
    line.validation_loss = step_.ValidationLoss();
    line.learning_rate = optimizer_.learning_rate();
    log_->Add(line);
    progress << "step " << line.step << std::fixed << std::setprecision(1) << "  "
             << 100 * Progress() << " %  loss " << std::setprecision(5) << line.loss;
    if (step_.held_out() > 0) progress << "  held out " << line.validation_loss;
    progress << std::setprecision(1) << "  " << line.steps_per_second << " steps/s"
             << std::defaultfloat << std::endl;
    logged_ = Now();
  }

  // Scores the checkpoint that was saved.
  void PlayScored(std::ostream& progress) {
    const Score score = scorer_->Play(options_.out + "/checkpoint", stop_);
    logged_ = Now();
    if (stop_) return;  // of some starts alone
    log_->Add(done_.step, done_.seconds, score);
    progress << "scored at step " << done_.step << ": success " << std::fixed
             << std::setprecision(1) << 100 * score.success << " % of " << score.episodes
             << ", reward " << std::setprecision(3) << score.reward << ", in "
             << std::setprecision(1) << score.seconds << " s" << std::defaultfloat << std::endl;
  }

  const TrainOptions& options_;
  const std::atomic<bool>& stop_;
  at::Device device_;
  OwnStream stream_;
  RecordedFrames frames_;
  Architecture policy_;
  Parameters parameters_;
  Network network_;
  Optimizer optimizer_;
  ImitationStep step_;
  RunProgress done_;
  std::optional<TrainingLog> log_;
  std::optional<Scorer> scorer_;
  double score_every_ = 0;  // seconds of training
  double logged_ = Now();
};

}  // namespace

bool TrainOnDataset(const ImitationOptions& imitation, const TrainOptions& options, Ranks& ranks,
                    std::ostream& progress, const std::atomic<bool>& stop) {
  if ((options.steps > 0) == (options.seconds > 0)) {
    throw Error(ExitCode::kUsage, "give either --steps or --seconds");
  }
  if (ranks.size() > 1)
    throw Error(ExitCode::kUsage, "--dataset trains on one GPU: leave --gpus out");
  return ImitationRun(imitation, options, ranks, stop).Train(progress);
}

}  // namespace mjp::app

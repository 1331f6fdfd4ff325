#include "apps/train/recipe.h"

#include <ATen/Context.h>

#include <cmath>
#include <filesystem>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/train/curves.h"
#include "apps/train/log_file.h"
#include "apps/train/optimisation/device.h"
#include "apps/train/run_length.h"
#include "apps/train/run_state.h"
#include "base/error.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/timing.h"
#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

Architecture ArchitectureOf(const TrainOptions& options) {
  Architecture policy = MakeArchitecture(options.architecture);
  if (policy.dit && options.step.prefix_share > 0)
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--prefix-share: --network dit is not trained with known actions");
  policy.config.trained_prefix = options.step.prefix_share > 0;
  return policy;
}

// What rounds of this run left in `folder`. Where its state is gone, they go too.
KeptRounds KeptOf(const TrainOptions& options, const std::string& folder) {
  return HasRunState(options.out + "/state.safetensors") ? KeptIn(folder) : KeptRounds();
}

// Throws Error where the run has learnt from more than `options` ask for: its last evaluation would
// have starts that it was taught on, and the rest would go on without a part of its rows.
void CheckKept(const RoundOptions& options, const KeptRounds& kept, const KeptRounds& late) {
  if (kept.count > options.count) {
    throw mjp::BadInput(options.folder + ": holds " + std::to_string(kept.count) +
                        " rounds of this run, more than --rounds " + std::to_string(options.count) +
                        "; go on with at least as many, or give another --out");
  }
  if (late.count > 0 && options.late_episodes == 0) {
    throw mjp::BadInput(options.late_folder +
                        ": holds late decisions of this run; go on with --late-episodes, or give "
                        "another --out");
  }
}

// Of `options`, what one of the ranks does. Throws Error for rounds that do not go on with those
// that the run has.
TrainOptions OfRank(TrainOptions options, const Ranks& ranks, const mjp::PolicyConfig& config) {
  options.step.flow = options.architecture.IsFlow();
  options.step.batch = std::max<int64_t>(1, options.step.batch / ranks.size());
  options.data.produce = ranks.rank() == 0;
  options.data.seed = options.seed;
  options.rounds.folder = options.data.rounds_folder = options.out + "/rounds";
  options.data.own_folder = options.out + "/demonstrations";
  options.rounds.planner = options.data.planner;
  options.rounds.seed = options.seed;
  options.rounds.action_steps = config.n_action_steps;
  options.rounds.late_folder = options.data.late_folder = options.out + "/late";
  const KeptRounds kept = KeptOf(options, options.rounds.folder);
  const KeptRounds late = KeptOf(options, options.rounds.late_folder);
  CheckKept(options.rounds, kept, late);
  const int left = options.rounds.count - kept.count;
  options.data.round_rows = kept.rows + options.rounds.Capacity(left);
  options.data.late_rows = late.rows + options.rounds.LateCapacity(left);
  if (ranks.rank() > 0) options.rounds.count = 0;
  return options;
}

// A training run: what it consists of, in the order in which one part needs another.
class Run {
 public:
  Run(const TrainOptions& options, Ranks& ranks, const std::atomic<bool>& stop)
      : ranks_(ranks),
        stop_(stop),
        device_(ChooseDevice(options.device, ranks)),
        stream_(device_),
        policy_(ArchitectureOf(options)),
        options_(OfRank(options, ranks, policy_.config)),
        parameters_(policy_, 2 * kBlockCorners, options.seed, device_,
                    device_.is_cuda() && !options.full_precision ? at::kBFloat16 : at::kFloat),
        network_(policy_.config, parameters_, true, policy_.transformer()),
        optimizer_(parameters_, options_.optimizer, ranks),
        rounds_(options_.rounds,
                PolicyOfRounds(device_.is_cuda(), options.data.threads,
                               {options.architecture.IsFlow() ? mjp::SamplerKind::kEuler
                                                              : mjp::SamplerKind::kDdim,
                                10})),
        data_(options_.data, device_, stop),
        step_(policy_.config, network_, data_.dataset(), parameters_, optimizer_, options_.step) {
    at::globalContext().setBenchmarkCuDNN(true);  // shapes never change
    std::filesystem::create_directories(options.out);
    ranks_.Connect(device_);
    SeedGenerator(device_, options.seed);
    if (HasRunState(StatePath())) {
      done_ = LoadRunState(StatePath(), optimizer_, device_, options_.architecture.Told(),
                           policy_.config.trained_prefix);
      // an earlier build kept no number of episodes: it took that of the options
      int& best_of = done_.best.n;
      if (best_of < done_.best.successes)
        best_of = std::max(done_.best.successes, options_.rounds.episodes);
      if (options.rounds.count == 0 && best_of > 0) {
        throw mjp::BadInput(StatePath() +
                            ": the run's checkpoint is the best of its rounds; go on with "
                            "--rounds, or give another --out");
      }
    }
    if (ranks_.rank() > 0) {
      SeedGenerator(device_, options.seed + kRankSeeds * ranks_.rank() + done_.step);
      return;
    }
    log_.emplace(options.out + "/log.jsonl", done_.step);
  }

  bool Train(std::ostream& progress) {
    progress << parameters_.size() << " parameters, " << data_.dataset().size() << " rows, on "
             << ranks_.size() << " x " << device_ << ", from step " << done_.step << std::endl;
    begin_ = mjp::Now() - done_.seconds;
    double saved = mjp::Now();
    while (Progress() < 1 && !stopped_) {
      optimizer_.SetStep(done_.step, Progress());
      step_.Run();
      ++done_.step;
      const bool border = done_.step % options_.log_every == 0;
      if (border) {
        Log(progress);
        data_.Refresh();
      }
      if (border || ranks_.size() == 1) Agree(border);
      if (ranks_.rank() > 0) continue;
      if (!stop_ && rounds_.Due(Progress())) PlayRound(progress);
      if (mjp::Now() - saved > options_.save_every) {
        Save();
        saved = mjp::Now();
      }
    }
    return ranks_.rank() == 0 ? Finish(progress) : Progress() >= 1;
  }

 private:
  static constexpr uint64_t kRankSeeds = 1000003;  // between the generators of two ranks
  static constexpr double kLookEvery = 0.1;        // seconds between looks for a stop

  std::string StatePath() const { return options_.out + "/state.safetensors"; }

  void Save() const {
    SaveRunState(StatePath(), optimizer_, done_, device_, options_.architecture.Told(),
                 policy_.config.trained_prefix);
  }

  double Progress() const { return ShareDone(options_, done_); }

  // Takes the time, and notices a stop, for all ranks alike. Until the first border cuDNN tries its
  // algorithms: not counted against the time.
  void Agree(bool border) {
    if (border && !measured_) begin_ = mjp::Now() - done_.seconds;
    measured_ |= border;
    const double seconds = measured_ ? mjp::Now() - begin_ : done_.seconds;
    if (ranks_.size() == 1) {
      done_.seconds = seconds;
      stopped_ = stop_;
      return;
    }
    at::Tensor first = at::tensor({seconds, stop_ ? 1.0 : 0.0}, at::kDouble).to(device_);
    if (ranks_.rank() > 0) first.zero_();
    ranks_.Sum(first);
    const at::Tensor host = first.to(at::kCPU);
    done_.seconds = host[0].item<double>();
    stopped_ = host[1].item<double>() > 0;
  }

  std::shared_ptr<const mjp::Checkpoint> Student() const {
    return std::make_shared<const mjp::Checkpoint>(
        parameters_.Export(policy_, optimizer_.average()));
  }

  void PlayRound(std::ostream& progress) {
    const int round = rounds_.next();
    if (!WaitForLabels(progress)) return;
    const auto student = Student();
    rounds_.Play(
        student, [&](const Figures& figures) { Keep(*student, round, figures, progress); }, stop_);
  }

  // Of the last round, with the state saved; false: a stop came first. That is no time of the
  // training, whose length may be in seconds.
  bool WaitForLabels(std::ostream& progress) {
    if (rounds_.WaitFor(0)) return true;
    const double begin = mjp::Now();
    Save();
    while (!stop_ && !rounds_.WaitFor(kLookEvery)) {
    }
    const double seconds = mjp::Now() - begin;
    begin_ += seconds;
    if (!stop_ && seconds >= 1) {
      progress << "waited " << std::llround(seconds) << " s for the labels of round "
               << rounds_.next() - 1 << std::endl;
    }
    return !stop_;
  }

  // The last state; the last checkpoint where it is the best, or the only one. Returns whether the
  // training is complete.
  bool Finish(std::ostream& progress) {
    const bool whole = Progress() >= 1;
    Save();  // what may not be saved is no checkpoint either
    if (whole && !EndSources(progress)) return false;
    const auto student = Student();
    bool complete = whole;
    if (options_.rounds.count == 0) {
      mjp::WriteCheckpoint(CheckpointPath(), *student, mjp::WeightFormat::kF16);
    } else if (whole) {
      const Figures figures = rounds_.Evaluate(student, stop_);
      complete = !stop_;
      if (complete) Keep(*student, options_.rounds.count, figures, progress);
    }
    DrawCurves(options_.out + "/log.jsonl", options_.out + "/curves.png");
    return complete;
  }

  // Without its lessons the training is not complete; false: a stop came before them.
  bool EndSources(std::ostream& progress) {
    // of a round whose labels a stop or a kill took
    while (rounds_.next() < std::min(done_.rounds, options_.rounds.count) && !stop_)
      PlayRound(progress);
    if (!WaitForLabels(progress)) return false;
    data_.EndPlanner();
    const int count = options_.rounds.count;
    if (stop_ || rounds_.next() >= count) return true;
    progress << "only " << rounds_.next() << " of " << count
             << " rounds were played before the training's end; more --"
             << (options_.steps > 0 ? "steps" : "seconds") << " leave time for more" << std::endl;
    return true;
  }

  std::string CheckpointPath() const { return options_.out + "/checkpoint"; }

  // Logs how `student` did, and keeps it unless an earlier one was clearly better: single episodes
  // do not decide against further training.
  void Keep(const mjp::Checkpoint& student, int round, const Figures& figures,
            std::ostream& progress) {
    done_.rounds = rounds_.next();
    const Interval interval = Wilson95(figures.successes, figures.episodes);
    const Proportion now = {figures.successes, figures.episodes};
    if (!ClearlyWorse(now, done_.best)) {
      if (interval.low >= Wilson95(done_.best.successes, done_.best.n).low) done_.best = now;
      // first: a run killed in between plays the round again, with the same student
      Save();
      mjp::WriteCheckpoint(CheckpointPath(), student, mjp::WeightFormat::kF16);
    }
    const double success = static_cast<double>(figures.successes) / figures.episodes;
    const nlohmann::ordered_json line = {
        {"step", done_.step},    {"seconds", done_.seconds},
        {"round", round},        {"episodes", figures.episodes},
        {"success", success},    {"low", interval.low},
        {"high", interval.high}, {"median_steps", figures.median_success_step}};
    log_->Add(line.dump());
    progress << "round " << round << std::fixed << std::setprecision(2) << ": success "
             << 100 * success << " % (" << 100 * interval.low << " to " << 100 * interval.high
             << "), median " << std::setprecision(0) << figures.median_success_step << " steps"
             << std::defaultfloat << std::endl;
    DrawCurves(options_.out + "/log.jsonl", options_.out + "/curves.png");
  }

  void Log(std::ostream& progress) {
    const Losses losses = step_.TakeLosses();
    const double now = mjp::Now();
    const double rate = static_cast<double>(options_.log_every) / (now - logged_);
    logged_ = now;
    CheckLoss(losses.diffusion, done_.step);
    if (ranks_.rank() > 0) return;
    const nlohmann::ordered_json line = {{"step", done_.step},
                                         {"seconds", done_.seconds},
                                         {"loss", losses.diffusion},
                                         {"corner_loss", losses.auxiliary},
                                         {"gradient_norm", losses.gradient_norm},
                                         {"learning_rate", optimizer_.learning_rate()},
                                         {"steps_per_second", rate},
                                         {"rows", data_.dataset().size()}};
    log_->Add(line.dump());
    progress << "step " << done_.step << std::fixed << std::setprecision(1) << "  "
             << 100 * Progress() << " %  loss " << std::setprecision(5) << losses.diffusion
             << "  corners " << losses.auxiliary << std::setprecision(1) << "  " << rate
             << " steps/s" << std::defaultfloat << std::endl;
  }

  Ranks& ranks_;
  const std::atomic<bool>& stop_;
  at::Device device_;
  OwnStream stream_;
  Architecture policy_;
  TrainOptions options_;
  Parameters parameters_;
  Network network_;
  Optimizer optimizer_;
  Rounds rounds_;
  DataSource data_;
  TrainingStep step_;
  RunProgress done_;
  std::optional<LogFile> log_;
  double begin_ = 0, logged_ = mjp::Now();
  bool measured_ = false, stopped_ = false;
};

}  // namespace

bool Train(const TrainOptions& options, Ranks& ranks, std::ostream& progress,
           const std::atomic<bool>& stop) {
  CheckLength(options);
  return Run(options, ranks, stop).Train(progress);
}

}  // namespace mjp::app

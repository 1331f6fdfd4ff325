#include "apps/train/distillation/distill.h"

#include <ATen/Context.h>

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <limits>
#include <memory>
#include <optional>

#include "apps/train/distillation/step.h"
#include "apps/train/distillation/teacher.h"
#include "apps/train/imitation/log.h"
#include "apps/train/optimisation/device.h"
#include "apps/train/run_folder.h"
#include "apps/train/run_length.h"
#include "apps/train/run_state.h"
#include "base/error.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/timing.h"
#include "tasks/pusht/planner/demonstrations.h"
#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

constexpr char kPrediction[] = "onestep";  // of the saved state: no other run goes on from it

RoundOptions RoundsOf(const TrainOptions& options, const mjp::PolicyConfig& config) {
  RoundOptions rounds = options.rounds;
  rounds.seed = options.seed;
  rounds.action_steps = config.n_action_steps;
  rounds.folder = options.out + "/rounds";
  return rounds;
}

// Rounds that label nothing, of which the trainer keeps count itself.
RoundOptions Unlabelled(RoundOptions rounds) {
  rounds.count = 0;
  return rounds;
}

Stream StreamOf(const Observed& observed) {
  const Figures& figures = observed.figures;
  return {observed.rows,
          {static_cast<int64_t>(observed.rows.size()), figures.episodes, figures.successes,
           static_cast<int64_t>(figures.median_success_step)}};
}

// Rows that the teacher's episodes and all rounds make at most, those of the folder included.
int64_t CapacityOf(const RoundOptions& rounds) {
  return KeptIn(rounds.folder).rows + rounds.Capacity(rounds.count + 1);
}

class DistillationRun {
 public:
  DistillationRun(const std::shared_ptr<const mjp::Checkpoint>& teacher,
                  const TrainOptions& options, Ranks& ranks, const std::atomic<bool>& stop)
      : options_(options),
        stop_(stop),
        device_(ChooseDevice(options.device, ranks)),
        stream_(device_),
        type_(device_.is_cuda() && !options.full_precision ? at::kBFloat16 : at::kFloat),
        checkpoint_(teacher),
        teacher_(teacher, options.teacher_steps, device_, type_),
        policy_(StudentOf(*teacher, options.architecture.execution)),
        parameters_(TensorsOf(*teacher), device_, type_),
        network_(policy_.config, parameters_),
        optimizer_(parameters_, options.optimizer, ranks),
        rounds_(RoundsOf(options, policy_.config)),
        teachers_(Unlabelled(rounds_),
                  PolicyOfRounds(device_.is_cuda(), options.data.threads,
                                 {mjp::SamplerKind::kDdim, options.teacher_steps})),
        students_(Unlabelled(rounds_), PolicyOfRounds(device_.is_cuda(), options.data.threads, {})),
        dataset_(CapacityOf(rounds_), device_),
        step_(teacher_, policy_.config, network_, dataset_, parameters_, optimizer_, options.step) {
    at::globalContext().setBenchmarkCuDNN(true);  // shapes never change
    std::filesystem::create_directories(options.out);
    CheckBegun(options.out, {{"teacher", teacher->files}, {"teacher_steps", options.teacher_steps}},
               {"teacher_steps"});
    SeedGenerator(device_, options.seed);
    if (HasRunState(StatePath())) {
      done_ = LoadRunState(StatePath(), optimizer_, device_, kPrediction);
    }
    if (std::max(rounds_.count, done_.rounds) > 0)
      std::filesystem::create_directories(rounds_.folder);
    log_.emplace(options.out, done_.step);
  }

  bool Train(std::ostream& progress) {
    if (!Play(teachers_, checkpoint_, 0, "the teacher", progress)) return false;
    progress << parameters_.size() << " parameters, on " << device_ << ", from step " << done_.step
             << std::endl;
    clock_.Start();
    double saved = Now();
    while (Progress() < 1) {
      AddRounds(progress);
      if (stop_) break;
      optimizer_.SetStep(done_.step, Progress());
      step_.Run();
      ++done_.step;
      const bool border = done_.step % options_.log_every == 0;
      clock_.Step(border);
      if (border) Log(progress);
      if (Now() - saved > options_.save_every) {
        Save();
        saved = Now();
      }
    }
    Save();
    return Progress() >= 1;
  }

 private:
  std::string StatePath() const { return options_.out + "/state.safetensors"; }

  double Progress() const { return ShareDone(options_, done_); }

  std::shared_ptr<const mjp::Checkpoint> Student() const {
    return std::make_shared<const mjp::Checkpoint>(
        parameters_.Export(policy_, optimizer_.average()));
  }

  // Whether the run has learnt from the next of the student's rounds before, or it is due.
  bool IsNextToAdd() const {
    return added_ < done_.rounds ||
           (added_ < rounds_.count && Progress() * (rounds_.count + 1) >= added_ + 1);
  }

  // Adds the observations of those rounds. Those that lie in the folder are not played again; one
  // that a stop interrupts is played where the run goes on, by the same student.
  void AddRounds(std::ostream& progress) {
    for (; IsNextToAdd(); done_.rounds = std::max(done_.rounds, ++added_)) {
      const int round = added_ + 1;
      const std::string name = "round " + std::to_string(round);
      if (const auto rows = LoadStream(rounds_.folder, round)) {
        dataset_.Append(*rows);
        progress << name << ": " << rows->size() << " observations of " << rounds_.folder
                 << std::endl;
      } else if (!Play(students_, Student(), round, name, progress)) {
        return;
      }
    }
  }

  // Adds the observations of a round of `player`'s episodes, and says how it did; those of the
  // student, whose rounds count from 1, are kept in the folder. Returns false, having added
  // nothing, once stop_ is true.
  bool Play(const Rounds& rounds, const std::shared_ptr<const mjp::Checkpoint>& player, int round,
            const std::string& name, std::ostream& progress) {
    const Observed observed = rounds.Observe(player, round, stop_);
    if (stop_) return false;
    if (round > 0) AppendStream(rounds_.folder, round, StreamOf(observed));
    dataset_.Append(observed.rows);
    const Figures& figures = observed.figures;
    const Interval interval = Wilson95(figures.successes, figures.episodes);
    progress << name << std::fixed << std::setprecision(2) << ": success "
             << 100.0 * figures.successes / figures.episodes << " % (" << 100 * interval.low
             << " to " << 100 * interval.high << "), median " << std::setprecision(0)
             << figures.median_success_step << " steps, " << observed.rows.size() << " observations"
             << std::defaultfloat << std::endl;
    return true;
  }

  void Save() const {
    SaveRunState(StatePath(), optimizer_, done_, device_, kPrediction);
    mjp::WriteCheckpoint(options_.out + "/checkpoint", *Student(), mjp::WeightFormat::kF16);
  }

  void Log(std::ostream& progress) {
    const DistillationLosses losses = step_.TakeLosses();
    const double now = Now();
    LogLine line;
    line.step = done_.step;
    line.seconds = done_.seconds;
    line.loss = losses.loss;
    line.validation_loss = std::numeric_limits<double>::quiet_NaN();
    line.learning_rate = optimizer_.learning_rate();
    line.steps_per_second = static_cast<double>(options_.log_every) / (now - logged_);
    CheckLoss(line.loss, done_.step);
    log_->Add(line);
    progress << "step " << line.step << std::fixed << std::setprecision(1) << "  "
             << 100 * Progress() << " %  loss " << std::setprecision(5) << line.loss << "  "
             << std::setprecision(2) << losses.distance << " px off the teacher  "
             << std::setprecision(1) << line.steps_per_second << " steps/s" << std::defaultfloat
             << std::endl;
    logged_ = now;
  }

  const TrainOptions& options_;
  const std::atomic<bool>& stop_;
  at::Device device_;
  OwnStream stream_;
  at::ScalarType type_;
  std::shared_ptr<const mjp::Checkpoint> checkpoint_;
  Teacher teacher_;
  Architecture policy_;
  Parameters parameters_;
  Network network_;
  Optimizer optimizer_;
  RoundOptions rounds_;
  Rounds teachers_, students_;
  Dataset dataset_;
  DistillationStep step_;
  RunProgress done_;
  TrainingClock clock_{done_};
  std::optional<TrainingLog> log_;
  int added_ = 0;  // rounds of the student whose observations the data set has
  double logged_ = Now();
};

}  // namespace

bool Distill(const std::string& teacher, const TrainOptions& options, Ranks& ranks,
             std::ostream& progress, const std::atomic<bool>& stop) {
  CheckLength(options);
  if (ranks.size() > 1)
    throw mjp::Error(mjp::ExitCode::kUsage, "--distill trains on one GPU: leave --gpus out");
  return DistillationRun(mjp::LoadCheckpoint(teacher), options, ranks, stop).Train(progress);
}

}  // namespace mjp::app

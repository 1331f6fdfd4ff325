#include "tasks/mjcf/run_model.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/threads.h"
#include "plugin/instances.h"
#include "plugin/model/outline.h"
#include "plugin/model/units.h"
#include "plugin/state.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/evaluation/hosted_failure.h"
#include "tasks/mjcf/hosted.h"
#include "tasks/mjcf/mjcf_task.h"
#include "tasks/mjcf/video.h"

namespace mjp::app {
namespace {

constexpr double kDefaultSeconds = 10;

// A model with a policy that is no task.
class PlainSimulation {
 public:
  PlainSimulation(const std::string& path, int substeps)
      : model_(LoadModel(path)), data_(MakeData(model_.get())), substeps_(substeps) {}

  void Start(uint32_t seed) {
    if (model_->nkey > 0) {
      mj_resetDataKeyframe(model_.get(), data_.get(), 0);
    } else {
      mj_resetData(model_.get(), data_.get());
    }
    SetEpisodeSeed(model_.get(), data_.get(), seed);
  }
  void Step(StepOutcome& outcome) {
    for (int i = 0; i < substeps_; ++i) mj_step(model_.get(), data_.get());
    outcome = {};
    outcome.failure = HostedFailure(model_.get(), data_.get());
    outcome.enough = false;
  }
  mjModel* model() { return model_.get(); }
  mjData* data() { return data_.get(); }

 private:
  ModelPtr model_;
  DataPtr data_;
  int substeps_;
};

// Either kind behind one face.
class Simulation {
 public:
  explicit Simulation(const std::string& path) : outline_model_(CompileWithoutPolicy(path)) {
    instance_ = FindPolicy(outline_model_.get());
    if (instance_ < 0) {
      throw BadInput(path +
                     " has no policy: write an instance of the plugin mjpolicy.policy in "
                     "<extension>; \"mjpolicy scaffold\" proposes one");
    }
    outline_.emplace(outline_model_.get(), instance_);
    if (SaysWholeTask(outline_model_.get())) {
      file_ = std::make_shared<TaskFile>(path);
      hosted_ = std::make_unique<MjcfHosted>(file_, LoadModel(path).get());
    } else {
      plain_.emplace(path, SubstepsOf(outline_model_.get(), period()));
    }
  }

  void Start(uint32_t seed) {
    if (hosted_) {
      hosted_->Start(0, seed);
    } else {
      plain_->Start(seed);
    }
  }
  void Step(StepOutcome& outcome) {
    if (hosted_) {
      hosted_->Step();
      hosted_->Judge(0, outcome);
    } else {
      plain_->Step(outcome);
    }
  }
  EpisodeResult Episode(uint32_t seed) const {
    if (file_) return NewEpisode(MjcfTask(file_), 0, seed);
    EpisodeResult episode;
    episode.seed = seed;
    return episode;
  }
  bool is_task() const { return file_ != nullptr; }
  int steps() const { return file_ ? file_->rules().steps() : 0; }
  double period() const { return outline_->config.period; }
  const Outline& outline() const { return *outline_; }
  int instance() const { return instance_; }
  std::string name() const { return outline_model_->names; }
  mjModel* model() { return hosted_ ? hosted_->model() : plain_->model(); }
  mjData* data() { return hosted_ ? hosted_->data() : plain_->data(); }

 private:
  ModelPtr outline_model_;
  int instance_ = -1;
  std::optional<Outline> outline_;
  std::shared_ptr<const TaskFile> file_;  // of a task
  std::unique_ptr<MjcfHosted> hosted_;
  std::optional<PlainSimulation> plain_;
};

std::vector<DrivenControl> ControlsOf(const ControlBinding& binding) {
  std::vector<DrivenControl> controls;
  for (const Quantity& quantity : binding.quantities()) controls.push_back({quantity.name});
  return controls;
}

void NoteControls(Simulation& simulation, int step, std::vector<DrivenControl>& controls) {
  const mjModel* model = simulation.model();
  const std::vector<int>& addresses = simulation.outline().controls.addresses();
  const PolicyInstance* policy = FindInstance(simulation.data(), simulation.instance());
  for (size_t i = 0; i < controls.size(); ++i) {
    const mjtNum value = simulation.data()->ctrl[addresses[i]];
    DrivenControl& control = controls[i];
    control.low = step == 1 ? value : std::min(control.low, value);
    control.high = step == 1 ? value : std::max(control.high, value);
    const bool cut = policy ? policy->Cut(static_cast<int>(i)) : IsCut(model, addresses[i], value);
    control.cut += (cut - control.cut) / step;
  }
}

}  // namespace

RunModelResult RunModel(const RunModelOptions& options,
                        const std::function<void(double seconds, double of)>& on_step,
                        const std::atomic<bool>& stop) {
  Simulation simulation(options.model);
  RunModelResult result;
  result.name = simulation.name();
  result.is_task = simulation.is_task();
  result.period = simulation.period();
  result.controls = ControlsOf(simulation.outline().controls);
  result.episode = simulation.Episode(options.seed);
  double steps = options.seconds / result.period;
  if (steps == 0)
    steps = simulation.is_task() ? simulation.steps() : kDefaultSeconds / result.period;
  const int most = std::max(1, static_cast<int>(std::ceil(steps - 1e-9)));
  const double begin = Now();
  simulation.Start(options.seed);
  std::unique_ptr<WorldVideo> video;
  if (!options.video.empty()) {
    video = std::make_unique<WorldVideo>(
        options.video, VideoCamera(simulation.model(), simulation.outline().config), result.period,
        simulation.model(), simulation.data());
    video->Add(result.episode);
  }
  StateHash hash;
  StepOutcome outcome;
  bool running = true;
  while (running && !stop) {
    simulation.Step(outcome);
    const std::vector<mjtNum> state = MovingState(simulation.model(), simulation.data());
    running = AccountStep(outcome, state, most, result.episode, hash);
    NoteControls(simulation, result.episode.steps, result.controls);
    if (video) video->Add(result.episode);
    on_step(result.episode.steps * result.period, most * result.period);
  }
  result.stopped = running;
  result.episode.hash = hash.value();
  result.episode.decisions =
      static_cast<int>(PolicyDecisions(simulation.model(), simulation.data()));
  result.seconds = Now() - begin;
  if (video) result.video = video->Close();
  return result;
}

}  // namespace mjp::app

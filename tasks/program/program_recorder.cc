#include "tasks/program/program_recorder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "plugin/state.h"
#include "tasks/demonstration/action_ranges.h"

namespace mjp::app {
namespace {

RecordOptions OptionsOf(const std::string& dataset, const char* by,
                        const PictureOptions& pictures) {
  RecordOptions options;
  options.out = dataset;
  options.by = by;
  options.keep_all = true;
  options.pictures = pictures;
  return options;
}

// Of a path, or of a model that a host compiled.
template <typename Source>
std::shared_ptr<const TaskFile> Opened(const Source& source) {
  auto file = std::make_shared<const TaskFile>(source);
  if (file->code().empty()) return file;
  throw BadInput(file->path() +
                 " is judged by code: a program records files that say it by elements");
}

// The action that writes the controls of `data` again, bit for bit. A limit of action_clip is no
// number in single precision: the next one beyond is cut to it.
std::vector<float> ExactAction(const ControlBinding& controls, const mjData* data) {
  std::vector<mjtNum> numbers(static_cast<size_t>(controls.action_size()));
  ActionOf(controls, data, numbers);
  std::vector<float> action(numbers.begin(), numbers.end());
  for (int i = 0; i < controls.size(); ++i) {
    const mjtNum control = data->ctrl[controls.addresses()[i]];
    float& number = action[static_cast<size_t>(controls.indices()[i])];
    const float next[] = {number, std::nextafter(number, HUGE_VALF),
                          std::nextafter(number, -HUGE_VALF)};
    const auto gives = [&](float each) { return controls.ToControl(i, each) == control; };
    const auto found = std::ranges::find_if(next, gives);
    if (found == std::end(next)) {
      throw BadInput(
          "a control of the policy's actuators is not what an action in single "
          "precision gives: it was set by something else than the policy");
    }
    number = *found;
  }
  return action;
}

}  // namespace

ProgramRecorder::ProgramRecorder(const std::string& task_file, const std::string& dataset,
                                 const PictureOptions& pictures)
    : ProgramRecorder(Opened(task_file), OptionsOf(dataset, "program", pictures)) {}

ProgramRecorder::ProgramRecorder(const mjModel* model, const std::string& dataset,
                                 const PictureOptions& pictures)
    : ProgramRecorder(Opened(model), OptionsOf(dataset, "plugin", pictures)) {}

ProgramRecorder::ProgramRecorder(std::shared_ptr<const TaskFile> file, const RecordOptions& options)
    : file_(std::move(file)),
      writer_(options, file_),
      world_(file_, nullptr),
      action_(static_cast<size_t>(world_.action_size())) {}

void ProgramRecorder::Forget() {
  begun_ = false;
  substep_ = 0;
  start_ = nullptr;
  showing_.reset();
  actions_.clear();
  states_.clear();
}

void ProgramRecorder::Begin(int64_t seed) {
  if (seed < 0 || seed > UINT32_MAX) {
    throw Error(ExitCode::kUsage, "the seed is not from 0 to 2^32 - 1");
  }
  Forget();
  seed_ = seed;
  begun_ = true;
}

void ProgramRecorder::CheckModel(const mjModel* model) const {
  const mjModel* own = file_->model();
  const std::pair<const char*, bool> same[] = {
      {"joints", model->nq == own->nq && model->nv == own->nv},
      {"actuators", model->nu == own->nu && model->na == own->na},
      {"bodies", model->nbody == own->nbody && model->nmocap == own->nmocap},
      {"geoms", model->ngeom == own->ngeom},
      {"lights and cameras", model->nlight == own->nlight && model->ncam == own->ncam},
      {"equalities", model->neq == own->neq},
      {"timestep", model->opt.timestep == own->opt.timestep},
  };
  for (const auto& [what, is_same] : same) {
    if (is_same) continue;
    throw BadInput(std::string("the model that is simulated has other ") + what + " than " +
                   file_->path() + ": simulate that file, or the one that it includes");
  }
}

void ProgramRecorder::NoteStart(const mjModel* model, std::vector<mjtNum> state) {
  auto start = std::make_shared<EpisodeStart>();
  start->state = std::move(state);
  start->look = CopyOfModel(file_->model());
  Start::CopyDrawn(model, start->look.get());
  start->look->opt.disableflags = model->opt.disableflags | mjDSBL_AUTORESET;
  start_ = std::move(start);
}

void ProgramRecorder::CheckStep(const mjModel* model, const mjData* data) const {
  if (!begun_) throw BadInput("no episode was begun: call mjp_record_begin first");
  if (!model || !data) throw Error(ExitCode::kUsage, "model and data must be given");
  CheckModel(model);
  if (data->signature != model->signature) {
    throw BadInput("data is of another model: make it by mj_makeData(model)");
  }
}

void ProgramRecorder::CheckLook(const mjModel* model) const {
  if (Start::DrawnAlike(model, start_->look.get())) return;
  throw BadInput(
      "bodies, geoms, materials, sites, lights or cameras of the model were changed within the "
      "episode, and its pictures would not show it: change them, then begin an episode");
}

bool ProgramRecorder::Step(const mjModel* model, mjData* data) {
  CheckStep(model, data);
  const ControlBinding& controls = file_->policy().controls;
  if (!start_) {
    std::vector<mjtNum> state(static_cast<size_t>(mj_stateSize(model, kStateWithoutPlugins)));
    mj_getState(model, data, state.data(), kStateWithoutPlugins);
    NoteStart(model, std::move(state));
  }
  last_model_ = model;
  last_data_ = data;
  const bool begins = substep_ % file_->substeps() == 0;
  if (begins) {
    CheckLook(model);
    states_.push_back(HashOfState(MovingState(model, data)));
    ActionOf(controls, data, action_);
    std::vector<float> action(action_.begin(), action_.end());
    for (const float number : action) {
      if (!std::isfinite(number)) {
        states_.pop_back();
        throw BadInput("a control of the policy's actuators is not a finite number");
      }
    }
    action_.assign(action.begin(), action.end());
    actions_.push_back(std::move(action));
  }
  controls.Write(action_, data);
  ++substep_;
  return begins;
}

bool ProgramRecorder::Stepped(const mjModel* model, const mjData* data, const mjtNum* before) {
  CheckStep(model, data);
  const auto moved = [] {
    return BadInput(
        "something else than the policy's actuators moved the simulation: a mocap "
        "body, a force, another control, a position that was set");
  };
  if (!start_) {
    NoteStart(model,
              std::vector<mjtNum>(before, before + mj_stateSize(model, kStateWithoutPlugins)));
    showing_.emplace(world_, file_->rules().steps());
    showing_->Begin(static_cast<uint32_t>(seed_), start_);
  }
  std::vector<float> action = ExactAction(file_->policy().controls, data);
  if (substep_ % file_->substeps() == 0) {
    CheckLook(model);
    std::vector<mjtNum> state(static_cast<size_t>(mj_stateSize(model, kMovingState)));
    mj_extractState(model, before, kStateWithoutPlugins, state.data(), kMovingState);
    if (HashOfState(state) != showing_->shown().states.back()) throw moved();
    action_.assign(action.begin(), action.end());
  } else if (!std::ranges::equal(action, action_)) {
    throw BadInput(
        "the policy's controls changed within a control step: latency must be a whole "
        "number of periods, and nothing else may set them");
  }
  if (++substep_ % file_->substeps() != 0) return false;
  showing_->Act(action_);
  while (world_.Substep()) {
  }
  const bool goes_on = showing_->Finish();
  if (HashOfState(MovingState(model, data)) != showing_->shown().states.back()) throw moved();
  return !goes_on;
}

// The control steps that are over.
bool ProgramRecorder::KeepShown() {
  const Demonstration shown = showing_->shown();
  Forget();
  if (!shown.result.valid) throw BadInput("nothing was kept: " + shown.result.reason);
  if (shown.actions.empty()) return false;
  writer_.Save(shown);
  return true;
}

bool ProgramRecorder::Keep() {
  if (!begun_ || !start_) return false;
  if (showing_) return KeepShown();
  const auto whole = static_cast<size_t>(substep_ / file_->substeps());
  if (substep_ % file_->substeps() == 0) {
    states_.push_back(HashOfState(MovingState(last_model_, last_data_)));
  }
  actions_.resize(whole);
  Showing showing(world_, static_cast<int>(whole) + 1);
  showing.Begin(static_cast<uint32_t>(seed_), start_);
  for (const std::vector<float>& action : actions_) {
    showing.Act(std::vector<mjtNum>(action.begin(), action.end()));
    while (world_.Substep()) {
    }
    showing.Finish();
  }
  const std::vector<uint64_t> states = std::move(states_);
  Forget();
  const Demonstration& shown = showing.shown();
  if (!shown.result.valid) throw BadInput("nothing was kept: " + shown.result.reason);
  for (size_t step = 0; step <= whole && step < states.size(); ++step) {
    if (states[step] == shown.states[step]) continue;
    throw BadInput("nothing was kept: control step " + std::to_string(step) +
                   " begins elsewhere when the episode is played again from its actions. "
                   "Something else than the policy's actuators moved it: a mocap body, a force, "
                   "another control, a position that was set" +
                   (step == whole ? "; or the simulation was reset before mjp_record_keep" : ""));
  }
  if (whole == 0) return false;
  writer_.Save(shown);
  return true;
}

}  // namespace mjp::app

#include "tasks/program/program_recorder.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "tasks/demonstration/action_ranges.h"

namespace mjp::app {
namespace {

constexpr int kWhole = mjSTATE_INTEGRATION & ~mjSTATE_PLUGIN;

RecordOptions OptionsOf(const std::string& dataset, const PictureOptions& pictures) {
  RecordOptions options;
  options.out = dataset;
  options.by = "program";
  options.keep_all = true;
  options.pictures = pictures;
  return options;
}

std::shared_ptr<const TaskFile> Opened(const std::string& path) {
  auto file = std::make_shared<const TaskFile>(path);
  if (file->code().empty()) return file;
  throw BadInput(path + " is judged by code: a program records files that say it by elements");
}

}  // namespace

ProgramRecorder::ProgramRecorder(const std::string& task_file, const std::string& dataset,
                                 const PictureOptions& pictures)
    : file_(Opened(task_file)),
      writer_(OptionsOf(dataset, pictures), file_),
      world_(file_, nullptr),
      action_(static_cast<size_t>(world_.action_size())) {}

void ProgramRecorder::Forget() {
  begun_ = false;
  substep_ = 0;
  start_ = nullptr;
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

void ProgramRecorder::NoteStart(const mjModel* model, const mjData* data) {
  auto start = std::make_shared<EpisodeStart>();
  start->state.resize(static_cast<size_t>(mj_stateSize(model, kWhole)));
  mj_getState(model, data, start->state.data(), kWhole);
  start->look = CopyOfModel(file_->model());
  Start::CopyDrawn(model, start->look.get());
  start->look->opt.disableflags = model->opt.disableflags | mjDSBL_AUTORESET;
  start_ = std::move(start);
}

bool ProgramRecorder::Step(const mjModel* model, mjData* data) {
  if (!begun_) throw BadInput("no episode was begun: call mjp_record_begin first");
  if (!model || !data) throw Error(ExitCode::kUsage, "model and data must be given");
  CheckModel(model);
  if (data->signature != model->signature) {
    throw BadInput("data is of another model: make it by mj_makeData(model)");
  }
  const ControlBinding& controls = file_->policy().controls;
  if (!start_) NoteStart(model, data);
  last_model_ = model;
  last_data_ = data;
  const bool begins = substep_ % file_->substeps() == 0;
  if (begins) {
    if (!Start::DrawnAlike(model, start_->look.get())) {
      throw BadInput(
          "bodies, geoms, materials, sites, lights or cameras of the model were changed within the "
          "episode, and its pictures would not show it: change them, then call mjp_record_begin");
    }
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

bool ProgramRecorder::Keep() {
  if (!begun_ || !start_) return false;
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

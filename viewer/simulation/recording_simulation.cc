#include "viewer/simulation/recording_simulation.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/error.h"

namespace mjp::app {
namespace {

RecordOptions OptionsOf(const SimulationRequest& request) {
  RecordOptions options;
  options.out = request.record;
  options.seed = request.seed;
  options.pictures = request.pictures;
  return options;
}

}  // namespace

RecordingSimulation::RecordingSimulation(const std::string& file, const SimulationRequest& request)
    : folder_(request.record),
      session_(OptionsOf(request), std::make_shared<const TaskFile>(file), request.hand) {
  ShowModel();
}

RecordingSimulation::~RecordingSimulation() {
  try {
    session_.Finish();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::fprintf(stderr, "data set %s: %lld episodes\n", folder_.c_str(),
               static_cast<long long>(session_.kept()));
}

bool RecordingSimulation::LookAfter() {
  session_.CheckSaved();
  return session_.saving();
}

// A start may draw colours, sizes and places of the model: the window then gets it anew.
void RecordingSimulation::ShowModel() {
  if (!model_ || session_.file().start().changes_model()) {
    SetModel(CopyOfModel(session_.world().model()));
  }
  rewards_ = std::make_shared<const std::vector<float>>(1, 0.0f);
  ShowState();
}

void RecordingSimulation::ShowState() {
  const mjModel* model = model_.get();
  const mjData* from = session_.world().moving();
  std::copy_n(from->qpos, model->nq, data_->qpos);
  std::copy_n(from->mocap_pos, 3 * model->nmocap, data_->mocap_pos);
  std::copy_n(from->mocap_quat, 4 * model->nmocap, data_->mocap_quat);
  data_->time = from->time;
}

void RecordingSimulation::Begin(EpisodeCommand command) {
  if (command == EpisodeCommand::kSkip) {
    session_.Next();
  } else {
    session_.Again();
  }
  substep_ = 0;
  ShowModel();
}

void RecordingSimulation::Obey(EpisodeCommand command) {
  if (command == EpisodeCommand::kStart) return session_.Start();
  if (command == EpisodeCommand::kNextTarget) return session_.NextTarget();
  if (command != EpisodeCommand::kKeep) return Begin(command);
  session_.Keep();
  substep_ = 0;
  ShowModel();
}

void RecordingSimulation::Seek(int step) {
  session_.Rewind(std::max(0, step));
  substep_ = 0;
  std::vector<float> rewards = *rewards_;
  rewards.resize(std::min(rewards.size(), static_cast<size_t>(session_.step()) + 1));
  rewards_ = std::make_shared<const std::vector<float>>(std::move(rewards));
  ShowState();
}

void RecordingSimulation::SetOptions(const mjp::PolicyOptions&) {
  throw mjp::BadInput("a person drives: there is no policy to change");
}

void RecordingSimulation::SetCheckpoint(const std::string&) {
  throw mjp::BadInput("a person drives: a checkpoint has no use here");
}

void RecordingSimulation::Advance() {
  session_.Advance();
  ShowState();
  ++substep_;
  if (!session_.between_control_steps()) return;
  substep_ = 0;
  std::vector<float> rewards = *rewards_;
  rewards.push_back(static_cast<float>(session_.reward()));
  rewards_ = std::make_shared<const std::vector<float>>(std::move(rewards));
}

void RecordingSimulation::Fill(SimSnapshot& snapshot) const {
  Simulation::Fill(snapshot);
  const Person& person = session_.person();
  RecordingState state;
  state.phase = static_cast<RecordingState::Phase>(session_.phase());
  state.success = session_.success();
  state.saving = session_.saving();
  state.kept = session_.kept();
  state.steps = session_.file().rules().steps();
  state.reward = session_.reward();
  state.hand = person.has_hand();
  state.dragged = session_.target_name();
  state.mocap = session_.drags_mocap();
  state.targets = session_.targets();
  std::ranges::copy(session_.target(), state.target.begin());
  state.numbers = person.numbers();
  state.gripper = person.gripper();
  snapshot.success = state.success;
  snapshot.score_name = "Reward";
  snapshot.solved_at = 0;
  snapshot.score = session_.reward();
  snapshot.max_coverage = session_.score();
  snapshot.coverage = rewards_;
  snapshot.recording = std::move(state);
}

}  // namespace mjp::app

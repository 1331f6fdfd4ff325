#include "viewer/simulation/simulation_thread.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "viewer/simulation/open_simulation.h"

namespace mjp::app {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

constexpr double kPublishPeriod = 1.0 / 120;  // seconds between snapshots at full speed
constexpr double kLookPeriod = 0.05;          // seconds between looks at what is done beside it

// What a hand does while the simulation runs, which does not begin anything anew.
bool ByHand(const Command& command) {
  return std::holds_alternative<PerturbCommand>(command) ||
         std::holds_alternative<DriveCommand>(command) ||
         std::holds_alternative<DragCommand>(command);
}

}  // namespace

SimulationThread::SimulationThread(std::unique_ptr<Simulation> simulation)
    : simulation_(std::move(simulation)) {
  Publish();
  thread_ = std::thread([this] { Run(); });
}

SimulationThread::~SimulationThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void SimulationThread::Send(Command command) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wake_.notify_one();
}

void SimulationThread::Flush() {
  std::unique_lock<std::mutex> lock(mutex_);
  executed_.wait(lock, [this] { return commands_.empty() && !busy_; });
}

void SimulationThread::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    const auto ready = [this] { return stop_ || !commands_.empty(); };
    const bool running = playing_ && !simulation_->finished();
    if (!running && beside_) {
      wake_.wait_for(lock, std::chrono::duration<double>(kLookPeriod), ready);
    } else if (!running) {
      wake_.wait(lock, ready);
    } else if (const double ahead = next_ - mjp::Now(); ahead > 0) {
      wake_.wait_for(lock, std::chrono::duration<double>(ahead), ready);
    }
    std::vector<Command> commands;
    commands.swap(commands_);
    busy_ = true;
    lock.unlock();
    try {
      for (const Command& command : commands) Obey(command);
      beside_ = false;
      beside_ = simulation_->LookAfter();
      if (playing_ && !simulation_->finished() && mjp::Now() >= next_) Play();
      if (!playing_ || simulation_->finished() || mjp::Now() < next_) simulation_->UseIdleTime();
    } catch (const std::exception& error) {
      message_ = error.what();
      playing_ = false;
    }
    const bool still = !playing_ || simulation_->finished();
    if (!commands.empty() || still || mjp::Now() - published_ >= kPublishPeriod) Publish();
    lock.lock();
    busy_ = false;
    executed_.notify_all();
  }
}

void SimulationThread::Obey(const Command& command) {
  const bool was_playing = playing_;
  std::visit(Overloaded{
                 [this](const PlayCommand& c) {
                   playing_ = c.playing;
                   until_ = -1;
                 },
                 [this](const RunCommand& c) {
                   playing_ = simulation_->step() < c.step;
                   until_ = c.step;
                 },
                 [this](const RestartCommand& c) { simulation_->Restart(c.seed); },
                 [this](const SeekCommand& c) {
                   simulation_->Seek(c.step);
                   playing_ = false;
                 },
                 [this](const SpeedCommand& c) {
                   speed_ = c.speed;
                   step_seconds_ = 0;
                 },
                 [this](const PolicyCommand& c) { simulation_->SetOptions(c.options); },
                 [this](const CheckpointCommand& c) { simulation_->SetCheckpoint(c.directory); },
                 [this](const ModelCommand& c) { Open(c.file); },
                 [this](const TraceCommand& c) { simulation_->SetTracing(c.on); },
                 [this](const KeypointCommand& c) { simulation_->SetKeypoints(c.on); },
                 [this](const SampleCommand& c) { simulation_->Sample(c.count); },
                 [this](const PerturbCommand& c) { simulation_->SetPerturb(c); },
                 [this](const DriveCommand& c) { simulation_->Drive(c.input); },
                 [this](const DragCommand& c) { simulation_->Drag(c.by); },
                 [this](const EpisodeCommand& c) { simulation_->Obey(c); },
             },
             command);
  if (!ByHand(command)) message_.clear();
  if (playing_ != was_playing || !ByHand(command)) {
    next_ = mjp::Now();
    stamp_ = 0;
  }
}

// The model before stays where this one cannot be opened.
void SimulationThread::Open(const std::string& file) {
  SimulationRequest request;
  request.model = file;
  std::unique_ptr<Simulation> opened = OpenSimulation(request);
  simulation_ = std::move(opened);
  step_seconds_ = 0;
}

void SimulationThread::Play() {
  simulation_->Advance();
  const double now = mjp::Now();
  if (speed_ > 0) {
    next_ += simulation_->timestep() / speed_;
    // after a slow decision simulated time is late; it does not run after
    if (next_ < now - simulation_->timestep()) next_ = now;
  } else {
    next_ = now;
  }
  if (!simulation_->between_control_steps()) return;
  if (stamp_ > 0) {
    constexpr double kSmoothing = 0.05;
    step_seconds_ += (step_seconds_ > 0 ? kSmoothing : 1) * (now - stamp_ - step_seconds_);
  }
  stamp_ = now;
  if (simulation_->step() == until_) playing_ = false;
}

void SimulationThread::Publish() {
  auto snapshot = std::make_shared<SimSnapshot>();
  simulation_->Fill(*snapshot);
  snapshot->playing = playing_ && !simulation_->finished();
  snapshot->speed = speed_;
  if (step_seconds_ > 0) {
    snapshot->real_time_factor = simulation_->period() / step_seconds_;
  }
  snapshot->message = message_;
  latest_.Set(std::move(snapshot));
  published_ = mjp::Now();
}

}  // namespace mjp::app

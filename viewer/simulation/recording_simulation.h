#ifndef VIEWER_SIMULATION_RECORDING_SIMULATION_H_
#define VIEWER_SIMULATION_RECORDING_SIMULATION_H_

#include <memory>
#include <string>
#include <vector>

#include "tasks/demonstration/session.h"
#include "viewer/simulation/open_simulation.h"

namespace mjp::app {

// A task file that a person drives, episode after episode, into a data set.
class RecordingSimulation : public Simulation {
 public:
  // Throws Error for a file that is no task, and as RecordingSession does.
  RecordingSimulation(const std::string& file, const SimulationRequest& request);
  // Waits until all kept episodes can be read, and tells the terminal.
  ~RecordingSimulation() override;

  // This start again.
  void Restart(uint32_t) override { Begin(EpisodeCommand::kDiscard); }
  void Seek(int step) override;
  // Both throw Error: a person drives.
  void SetOptions(const mjp::PolicyOptions& options) override;
  void SetCheckpoint(const std::string& directory) override;
  void Advance() override;
  void Fill(SimSnapshot& snapshot) const override;
  void Drive(const DriveInput& input) override { session_.person().Drive(input); }
  void Drag(const std::array<double, 3>& by) override { session_.Drag(by); }
  void Obey(EpisodeCommand command) override;
  bool LookAfter() override;

  uint32_t seed() const override { return session_.seed(); }
  int step() const override { return session_.step(); }
  bool finished() const override { return session_.phase() != RecordingSession::Phase::kShowing; }
  double period() const override { return session_.file().period(); }

 private:
  void Begin(EpisodeCommand command);
  void ShowModel();
  void ShowState();
  bool AskAgain(const DecisionRecord&, uint32_t, mjp::PolicyOutput&) override { return false; }

  std::string folder_;
  mutable RecordingSession session_;
  std::shared_ptr<const std::vector<float>> rewards_;  // [0]: the start, then each control step
};

}  // namespace mjp::app

#endif  // VIEWER_SIMULATION_RECORDING_SIMULATION_H_

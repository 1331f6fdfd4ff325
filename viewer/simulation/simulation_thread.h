#ifndef VIEWER_SIMULATION_SIMULATION_THREAD_H_
#define VIEWER_SIMULATION_SIMULATION_THREAD_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "viewer/simulation/latest.h"
#include "viewer/simulation/simulation.h"
#include "viewer/snapshot.h"

namespace mjp::app {

// Runs a simulation on a thread of its own, paced to real time, executing commands in their order.
// What goes wrong there becomes the message of the next snapshot.
class SimulationThread {
 public:
  explicit SimulationThread(std::unique_ptr<Simulation> simulation);
  ~SimulationThread();
  SimulationThread(const SimulationThread&) = delete;
  SimulationThread& operator=(const SimulationThread&) = delete;

  // Any thread. The newest state; never null.
  std::shared_ptr<const SimSnapshot> snapshot() const { return latest_.Get(); }
  void Send(Command command);
  // Waits until every command sent before has been executed.
  void Flush();

 private:
  void Run();
  void Obey(const Command& command);
  void Open(const std::string& file);
  void Play();
  void Publish();

  std::unique_ptr<Simulation> simulation_;
  Latest<SimSnapshot> latest_;
  bool playing_ = false;
  int until_ = -1;  // control step to pause at; -1: none
  double speed_ = 1;
  double next_ = 0;          // wall time at which the next physics step is due
  double published_ = 0;     // wall time of the last snapshot
  double step_seconds_ = 0;  // wall time of a control step, smoothed; 0: not measured
  double stamp_ = 0;         // wall time when the current control step began; 0: not measured
  std::string message_;
  bool beside_ = false;  // something is done beside the simulation

  std::mutex mutex_;
  std::condition_variable wake_, executed_;
  std::vector<Command> commands_;  // guarded by mutex_
  bool busy_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace mjp::app

#endif  // VIEWER_SIMULATION_SIMULATION_THREAD_H_

#ifndef PLUGIN_RECORDING_H_
#define PLUGIN_RECORDING_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "plugin/model/config.h"
#include "plugin/record_functions.h"

namespace mjp {

// Writes what an instance sees and does in its host's loop as a data set: attribute `record`. Of
// all simulations that record into one folder one writes, the first that moves; the others say so
// once. Several that take turns in one instance, as in the engine's batches, are refused. Of steps
// that begin at one time, as finite differences try them, one is written. Nothing here ends the
// host: what cannot be recorded is said in a warning for each cause, and how many episodes are
// missing in one more at the end.
class Recording {
 public:
  // Pictures are of the size that the policy sees.
  Recording(const mjModel* model, int instance, const Config& config, const PolicyConfig& policy);
  // Keeps the episode, and waits until all that were kept can be read.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Where the step begins that the engine may be taking.
  void Before(const mjModel* model, const mjData* data);
  // The engine took it. `seed`: of the episode.
  void After(const mjModel* model, const mjData* data, uint64_t seed);
  // The episode is over; the next begins with the control step that begins next.
  void End();

 private:
  // Where a simulation is, as far as a policy moves it: time and mjSTATE_PHYSICS.
  using Place = std::vector<mjtNum>;

  // Notes that a step was taken from `from` to `to`. Returns whether it comes back to a simulation
  // that was left for another one.
  bool ComesBack(const Place& from, Place to, bool again);
  void KeepRunning();
  void Begin(const mjModel* model, uint64_t seed);
  void TakesTurns(const mjModel* model);
  bool Open(const mjModel* model);
  bool BeginsControlStep(const mjModel* model) const;
  void Refuse(const mjModel* model, const std::string& why);
  // Once for each cause and model, until one of its simulations records.
  void SayWhyNot(const mjModel* model, const std::string& why);
  void Keep();
  // The episode is not in the data set.
  void Lose(const std::string& why);
  // Once for each cause: texts that differ in their numbers alone are of one.
  void WarnOnce(const std::string& what);
  void Say(const std::string& what) const;

  struct ModelDeleter {
    void operator()(mjModel* model) const { mj_deleteModel(model); }
  };

  int instance_;
  std::string name_, folder_;  // as messages have them
  double period_;
  int width_ = 0, height_ = 0;
  uint64_t generation_;                              // of the process (base/fork.h)
  std::unique_ptr<mjModel, ModelDeleter> original_;  // before hosts change its look; until opened

  MjpRecorder* recorder_ = nullptr;  // null: not the one that writes, or nothing was recorded yet
  enum class Episode { kNone, kRunning, kOver } episode_ = Episode::kNone;
  bool refused_ = false;
  std::set<std::string> said_;   // causes, without their numbers
  int64_t kept_ = 0, lost_ = 0;  // episodes
  std::vector<mjtNum> before_;   // empty: no step was begun
  double begin_ = 0;             // the time of it
  double from_ = 0, end_ = 0;    // the times before and after the last step
  int64_t steps_ = 0;            // of the engine, in this episode
  Place last_;                   // where the last step led to; empty: none since End
  // Hashes of places from which something else went on; the second: of a run of steps that had
  // come back to such a place itself.
  std::unordered_set<size_t> left_, left_again_;
  bool came_back_ = false;  // the last run of steps began at a place that was left
};

}  // namespace mjp

#endif  // PLUGIN_RECORDING_H_

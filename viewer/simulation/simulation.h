#ifndef VIEWER_SIMULATION_SIMULATION_H_
#define VIEWER_SIMULATION_SIMULATION_H_

#include <mujoco/mujoco.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tasks/physics/model.h"
#include "tasks/results/episode.h"
#include "viewer/diagnostics/keypoints.h"
#include "viewer/snapshot.h"

namespace mjp::app {

// What the viewer runs, physics step by physics step, with everything kept that can be looked at:
// Push-T's episodes (viewer/simulation/episode_simulation.h), any other task or model with the
// policy as its plugin (viewer/simulation/model_simulation.h). Not thread-safe.
class Simulation {
 public:
  virtual ~Simulation() = default;
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Starts from the beginning with this seed. The log of decisions goes on.
  virtual void Restart(uint32_t seed) = 0;
  // Goes back to before control step `step`, or the oldest one kept; later ones are forgotten.
  virtual void Seek(int step) = 0;
  // Runs the policy in another way, or another checkpoint (a directory), from the beginning on.
  // Both throw Error, and go on with the policy they have.
  virtual void SetOptions(const mjp::PolicyOptions& options) = 0;
  virtual void SetCheckpoint(const std::string& directory) = 0;
  // Adds `count` chunks from other noise to the last decision, if it is this episode's. Throws
  // Error as Policy::Infer does.
  void Sample(int count);
  // Takes a decision where one is due, then one physics step. Nothing once the episode is over.
  // Throws Error as Policy::Infer does.
  virtual void Advance() = 0;
  // Finds out what is not known yet of the newest decision, and would have held it up: to be called
  // when nothing is due. Throws Error as Policy::Infer does.
  void UseIdleTime();
  // Fills all of a snapshot but what its thread knows.
  virtual void Fill(SimSnapshot& snapshot) const;

  virtual uint32_t seed() const = 0;  // of this episode
  virtual int step() const = 0;       // control steps taken
  virtual bool finished() const = 0;
  virtual double period() const = 0;  // seconds of a control step
  bool between_control_steps() const { return substep_ == 0; }
  double timestep() const { return model_->opt.timestep; }

  // Whether decisions keep the chunk after each denoising step.
  void SetTracing(bool on) { tracing_ = on; }
  // Whether decisions keep where the encoder looks; the newest one gets it at once.
  void SetKeypoints(bool on);
  void SetPerturb(const PerturbCommand& perturb);

  // What a person does who records a data set; nothing where nobody does.
  virtual void Drive(const DriveInput&) {}
  virtual void Drag(const std::array<double, 3>&) {}
  virtual void Obey(EpisodeCommand) {}
  // Looks after what is done beside the simulation. Returns whether that still goes on. Throws
  // Error where it failed.
  virtual bool LookAfter() { return false; }

 protected:
  Simulation();

  // Simulates another model from now on; the log and the list of episodes begin anew. Throws Error
  // as MakeData does.
  void SetModel(ModelPtr model);

  // One mj_step with the force by hand. Adds to the physics time of this control step.
  void StepPhysics();
  // Adds the physics time of the control step that is over to the newest decision, whose span
  // begins where its actions were applied; without what a plugin spent `elsewhere` (seconds).
  void AddPhysicsTime(double elsewhere = 0);
  // To be told of the policy in use, as it was made; the rest of the information is the caller's.
  std::shared_ptr<PolicyInfo> UsePolicy(std::shared_ptr<const mjp::Checkpoint> checkpoint,
                                        const mjp::PolicyOptions& options,
                                        const std::string& description, int action_steps);
  // Asks a policy what this decision of the log was made from once more, with the noise of decision
  // `noise`. False if that is not known any more. Throws Error as Policy::Infer does.
  virtual bool AskAgain(const DecisionRecord& record, uint32_t noise,
                        mjp::PolicyOutput& output) = 0;
  // Keeps what the policy saw and was told.
  static void KeepObservation(const mjp::PolicyInput& input, DecisionRecord& record);
  // What each of `chunks` in a row counts for in the action that is executed now; none where only
  // one of them does.
  std::vector<float> SharesOf(int chunks) const;
  // Moves the chunk after each denoising step into `record`, in the unit of actions, and what
  // became of the windows.
  void KeepDenoising(mjp::PolicyTrace& trace, DecisionRecord& record) const;
  // Adds where the encoder looks, if that is asked for.
  void AddKeypoints(DecisionRecord& record);
  // The decisions, oldest first. Records are shared with snapshots: to change one, put another in
  // its place.
  const DecisionLog& log() const { return log_; }
  DecisionLog& EditLog();
  // Notes how an episode ended, unless somebody disturbed it or it ended here before.
  void KeepEpisode(const EpisodeResult& result, const StateHash& hash);
  void AddToLog(std::shared_ptr<const DecisionRecord> record);
  // The state of the physics, of plugins too.
  std::vector<mjtNum> SavePhysics() const;
  void RestorePhysics(const std::vector<mjtNum>& physics);
  std::shared_ptr<const mjModel> model_;  // shared with the window, which only reads it
  DataPtr data_;
  bool tracing_ = true, disturbed_ = false;
  bool unexplained_ = false;  // the newest decision's denoising is asked for, and not there yet
  int substep_ = 0;           // physics steps since the last control step
  std::shared_ptr<const mjp::Checkpoint> checkpoint_;  // null: no policy
  std::shared_ptr<const PolicyInfo> info_;
  std::shared_ptr<const std::vector<EpisodeRow>> ended_;  // this policy's; null: none

 private:
  DecisionLog log_;
  mutable std::shared_ptr<const DecisionLog> published_;  // log_ as snapshots have it; or null
  mjvPerturb perturb_;
  bool finding_ = false;
  std::unique_ptr<KeypointFinder> finder_;  // made when first asked for
  double physics_seconds_ = 0;              // of this control step
};

}  // namespace mjp::app

#endif  // VIEWER_SIMULATION_SIMULATION_H_

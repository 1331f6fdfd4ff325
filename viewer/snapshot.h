#ifndef VIEWER_SNAPSHOT_H_
#define VIEWER_SNAPSHOT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "policy/policy.h"
#include "policy/timing.h"

// What crosses between the simulation's thread and the window: immutable snapshots one way,
// commands the other. Positions are pixels of the benchmark, unless a name says otherwise.

namespace pusht {

// One decision of the policy with all that can be looked at afterwards. H = horizon.
struct DecisionRecord {
  uint32_t seed = 0;                // of the episode
  int decision = 0;                 // index within the episode
  int step = 0;                     // control step it was taken at
  int first_action = 0, count = 0;  // the executed part of the chunk
  dp::StageTimes times;             // physics: busy time so far, from its first step on
  std::vector<double> qpos;         // (nq) of the model, when it was taken
  std::vector<uint8_t> frames;      // (To, 96, 96, 3) RGB, what the policy saw; empty: no camera
  std::vector<float> actions;       // (H, 2)
  std::vector<float> denoising;     // (K, H, 2), the chunk after each denoising step; or empty
  std::vector<float> samples;       // (n, H, 2), chunks from other noise for the same picture
  std::array<float, 2> agent = {};  // where the agent was
};
using DecisionLog = std::vector<std::shared_ptr<const DecisionRecord>>;

// What is known about the policy that runs.
struct PolicyInfo {
  std::string checkpoint;     // directory, or what it is instead
  bool random = false;        // random weights: nothing to judge a robot by
  std::string description;    // backend, device, precision
  dp::PolicyOptions options;  // as resolved
  int horizon = 0, n_obs_steps = 0, action_steps = 0;
};

// The state of the simulation at one moment. Never changes once published.
struct SimSnapshot {
  uint32_t seed = 0;
  int step = 0, substep = 0;  // control steps taken; physics steps since then
  int decisions = 0;          // taken in this episode
  double time = 0;            // seconds of simulation
  bool playing = false, finished = false, success = false, disturbed = false;
  double speed = 1;             // wanted, relative to real time; 0: as fast as it can
  double real_time_factor = 0;  // measured, pauses left out
  uint64_t hash = 0;            // of every state, as an evaluation writes it
  double max_coverage = 0, score = 0;
  std::vector<double> qpos;                            // (nq)
  std::shared_ptr<const std::vector<float>> coverage;  // [0]: the start, then each control step
  std::shared_ptr<const DecisionLog> log;              // the last decisions, oldest first
  std::shared_ptr<const PolicyInfo> policy;
  std::string message;  // the last thing that went wrong, or ""
};

struct PlayCommand {
  bool playing;
};
// Plays until `step` control steps have been taken, then pauses.
struct RunCommand {
  int step;
};
struct RestartCommand {
  uint32_t seed;
};
// Goes back in the episode to before control step `step`, and pauses.
struct SeekCommand {
  int step;
};
struct SpeedCommand {
  double speed;
};
struct PolicyCommand {
  dp::PolicyOptions options;
};
struct CheckpointCommand {
  std::string directory;
};
struct TraceCommand {
  bool on;
};
// Asks for `count` more chunks for the last decision's picture, each from its own noise.
struct SampleCommand {
  int count;
};
// A force on a body, as mjvPerturb has it; `body` 0: none.
struct PerturbCommand {
  int body = 0, active = 0;
  std::array<double, 3> position = {}, local = {};
  std::array<double, 4> rotation = {1, 0, 0, 0};
  double mass = 0;
};
using Command =
    std::variant<PlayCommand, RunCommand, RestartCommand, SeekCommand, SpeedCommand, PolicyCommand,
                 CheckpointCommand, TraceCommand, SampleCommand, PerturbCommand>;

}  // namespace pusht

#endif  // VIEWER_SNAPSHOT_H_

#ifndef VIEWER_SNAPSHOT_H_
#define VIEWER_SNAPSHOT_H_

#include <mujoco/mujoco.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "policy/act/act_attention.h"
#include "policy/policy.h"
#include "policy/timing.h"
#include "tasks/demonstration/person.h"

// What crosses between the simulation's thread and the window: immutable snapshots one way,
// commands the other. Actions of Push-T are pixels of the benchmark, others in the policy's unit.

namespace mjp::app {

// One decision of the policy with all that can be looked at afterwards. H = horizon.
struct DecisionRecord {
  uint32_t seed = 0;                // of the episode
  int decision = 0;                 // index within the episode
  int step = 0;                     // control step it was taken at
  int first_action = 0, count = 0;  // the executed part of the chunk
  double asked = 0;                 // wall time of the question, seconds; 0: as `times` begin
  double looking = 0;               // seconds spent to keep all this, after the decision
  mjp::Backend backend = mjp::Backend::kCpu;  // that it was taken on
  mjp::StageTimes times;     // physics: busy time so far, from where actions were applied
  std::vector<double> qpos;  // (nq) of the model, when it was taken
  // what the policy saw (PicturesOf); both empty: no camera
  std::vector<std::byte> scenes;  // (To, scene_bytes), where the policy drew it by `drawer`; or
  std::vector<uint8_t> frames;    // (To, cameras, height, width, 3) RGB
  const mjp::SceneDrawer* drawer = nullptr;
  std::vector<float> state, environment;  // (To, numbers) what else it was told, raw units
  // D = action_dim
  std::vector<float> keypoints;     // (To, points, 2) where the encoder looks, pixels of the first
                                    // camera's picture; negative: nowhere; empty: not asked for
  std::vector<float> actions;       // (H, D)
  int chunk_age = 0;                // control steps since what `actions` answer was seen
  std::vector<float> denoising;     // (K, H, D), the chunk after each denoising step; or empty
  std::vector<float> residuals;     // (passes, K) of windows of steps, as MakeParallelSampler
                                    // has them; empty: no windows, or not known
  std::vector<float> shares;        // of each chunk in the first action, where all are averaged:
                                    // the oldest first; empty: they are not
  std::vector<float> samples;       // (n, H, D), chunks from other noise for the same picture
  std::array<float, 2> agent = {};  // Push-T: where the agent was
};
using DecisionLog = std::vector<std::shared_ptr<const DecisionRecord>>;

// What the policy saw when it took a decision: (To, cameras, height, width, 3) RGB; empty: no
// camera. Drawn when it is looked at, so that it costs the decision nothing.
std::vector<uint8_t> PicturesOf(const DecisionRecord& record);
// Whether two records, of one policy, are of one decision: its other figures come later.
bool SameDecision(const DecisionRecord& a, const DecisionRecord& b);

// Where the actions of a decision look.
struct Attention {
  std::shared_ptr<const DecisionRecord> decision;
  std::shared_ptr<const mjp::Checkpoint> network;
  std::vector<float> weights;  // (H, tokens): of each action, with the sum 1; empty: see `error`
  std::string error;
};

// How an episode ended: one line of an evaluation's folder.
struct EpisodeRow {
  uint32_t seed = 0;
  bool success = false;
  double score = 0;
  int steps = 0;
  uint64_t hash = 0;
};

// What is known about the policy that runs. A model without one has horizon 0.
struct PolicyInfo {
  std::string checkpoint;                  // directory, or what it is instead
  bool random = false;                     // random weights: nothing to judge a robot by
  std::string description;                 // backend, device, precision
  mjp::PolicyOptions options;              // as resolved
  std::vector<mjp::SamplerKind> samplers;  // that it can run; none: a chunk takes one pass
  int horizon = 0, n_obs_steps = 0, action_steps = 0, action_dim = 0;
  int picture_width = 0, picture_height = 0;  // pixels; 0: no camera
  std::vector<std::string> cameras;           // what they are called
  bool has_keypoints = false;                 // the encoder's maps keep places
  // of each camera, where actions look at their tokens; empty: this network's do not
  std::vector<mjp::PictureTokens> attended;
  std::shared_ptr<const mjp::Checkpoint> network;  // null: no policy
  bool on_table = false;                           // actions are places on Push-T's table
};

// How far a person has come who records a data set.
struct RecordingState {
  enum class Phase { kReady, kShowing, kOver };
  Phase phase = Phase::kReady;
  bool success = false, saving = false;
  int64_t kept = 0;  // episodes of the data set that cannot be lost any more
  int steps = 0;     // of an episode, at most
  double reward = 0;
  bool hand = false;    // keys drive it; else they drive numbers of the action
  std::string dragged;  // by the mouse: the hand, or a mocap body; empty: nothing can be
  bool mocap = false;   // it is a mocap body
  int targets = 0;      // that can be dragged
  std::array<double, 3> target = {};  // of what is dragged
  int numbers = 0, gripper = -1;      // of an action; the one that J and K drive
};

// The state of the simulation at one moment. Never changes once published.
struct SimSnapshot {
  std::shared_ptr<const mjModel> model;
  uint32_t seed = 0;
  int step = 0, substep = 0;  // control steps taken; physics steps since then
  int decisions = 0;          // taken in this episode
  double time = 0;            // seconds of simulation
  double period = 0.1;        // seconds of a control step
  bool episode = true;        // it ends, with a score; else the simulation goes on for ever
  bool playing = false, finished = false, success = false, disturbed = false;
  double speed = 1;                     // wanted, relative to real time; 0: as fast as it can
  double real_time_factor = 0;          // measured, pauses left out
  uint64_t hash = 0;                    // of every state, as an evaluation writes it
  std::string score_name = "Coverage";  // of `coverage`
  double solved_at = 0.95;              // `coverage` that ends an episode; 0: something else does
  double max_coverage = 0, score = 0;
  std::vector<double> qpos, mocap_pos, mocap_quat;     // (nq), (nmocap, 3), (nmocap, 4)
  std::vector<mjvGeom> decoration;                     // what plugins add to the scene for people
  std::shared_ptr<const std::vector<float>> coverage;  // [0]: the start, then each control step
  std::shared_ptr<const DecisionLog> log;              // the last decisions, oldest first
  std::shared_ptr<const std::vector<EpisodeRow>> episodes;  // ended here, this policy's; or null
  std::shared_ptr<const PolicyInfo> policy;
  std::optional<RecordingState> recording;
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
  mjp::PolicyOptions options;
};
struct CheckpointCommand {
  std::string directory;
};
struct ModelCommand {
  std::string file;  // MJCF
};
struct TraceCommand {
  bool on;
};
// Whether the encoder's keypoints are found: for the newest decision and those that follow.
struct KeypointCommand {
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
// What a person who records a data set holds.
struct DriveCommand {
  DriveInput input;
};
// Moves the target of the hand, in the world.
struct DragCommand {
  std::array<double, 3> by = {};
};
// What a person says of the episode.
enum class EpisodeCommand { kStart, kKeep, kDiscard, kSkip, kNextTarget };
using Command =
    std::variant<PlayCommand, RunCommand, RestartCommand, SeekCommand, SpeedCommand, PolicyCommand,
                 CheckpointCommand, ModelCommand, TraceCommand, KeypointCommand, SampleCommand,
                 PerturbCommand, DriveCommand, DragCommand, EpisodeCommand>;

}  // namespace mjp::app

#endif  // VIEWER_SNAPSHOT_H_

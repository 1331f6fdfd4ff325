#ifndef TASKS_PUSHT_OBSERVATION_H_
#define TASKS_PUSHT_OBSERVATION_H_

#include <mujoco/mujoco.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "plugin/pictures/picture_source.h"
#include "policy/policy.h"
#include "tasks/evaluation/options.h"
#include "tasks/pusht/options.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/physics/state.h"
#include "tasks/pusht/pictures/rasterise.h"

namespace mjp::app {

// The camera of models/pusht.xml that a policy sees by.
inline constexpr char kPolicyCamera[] = "top";

// One control step of one episode as a policy observes it.
struct Snapshot {
  State state;
  std::vector<mjtNum> qpos;  // of the MuJoCo model
};

// The benchmark's environment state: the block's eight vertices, bar then stem, in the order of
// the original engine's hulls; pixels.
std::array<float, 16> BlockVertices(const State& state);

// Turns snapshots into the inputs of a policy: pictures by the chosen renderer (disturbed as the
// conditions say), agent position, environment state.
class Observer {
 public:
  // At most `threads` disturb pictures. Throws Error where the policy wants inputs that Push-T does
  // not have, and where the rasteriser is to draw a model that shows something else, or whose goal
  // is not the benchmark's.
  Observer(RendererKind renderer, const Conditions& conditions, const mjp::PolicyConfig& config,
           const Scene& scene, int threads = 1);

  // Starts an input of no environments.
  void Clear();
  // Appends one environment: its last n_obs_steps snapshots, oldest first, at control step `tick`.
  void Add(std::span<const Snapshot> history, uint32_t seed, int tick, uint32_t decision);
  // The input of all environments added since Clear; valid until the next Clear.
  mjp::PolicyInput Input();

 private:
  // One that is to be disturbed in frames_: as MuJoCo drew it, or of a scene to rasterise first.
  struct Disturbed {
    mjp::FlatScene scene;
    uint32_t seed;
    int tick;
  };

  void AddPictures(std::span<const Snapshot> history, uint32_t seed, int tick);
  void DrawWithMujoco(const Snapshot& snapshot, std::span<uint8_t> picture);
  void Disturb();

  Conditions conditions_;
  const mjp::PolicyConfig& config_;
  const Scene& scene_;
  const int threads_;
  const bool disturbs_;
  std::unique_ptr<mjp::PictureSource> source_;  // MuJoCo's renderer only
  DataPtr data_;                                // what it draws
  std::vector<mjp::NoiseKey> keys_;
  std::vector<mjp::FlatScene> scenes_;
  std::vector<uint8_t> frames_;
  std::vector<Disturbed> disturbed_;  // of frames_, all or none, until Input
  std::vector<float> state_, environment_;
};

}  // namespace mjp::app

#endif  // TASKS_PUSHT_OBSERVATION_H_

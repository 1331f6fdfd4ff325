#ifndef PLUGIN_STATE_H_
#define PLUGIN_STATE_H_

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

// What an instance of the plugin keeps in mjData.plugin_state: everything that its next control
// depends on. Copying, saving and restoring a simulation's state therefore carries the policy
// along. Pictures are not in it: they are drawn again from the poses where they are missing.

namespace mjp {

// The state of a simulation without what its plugins remember, of mj_getState.
inline constexpr int kStateWithoutPlugins = mjSTATE_INTEGRATION & ~mjSTATE_PLUGIN;

// Sizes of an instance's state, a function of model and checkpoint.
struct StateShape {
  int history = 0;      // To: observations the policy looks at
  int observation = 0;  // numbers of one observation: state, then environment
  int pose = 0;   // what a picture is a function of: qpos, mocap_pos, mocap_quat; 0: no camera
  int chunk = 0;  // horizon x action_dim
  int kept = 2;   // chunks: the current one and those before it

  int Size() const;  // in mjtNum
};

// One instance's part of plugin_state, in this order:
//   layout, seed, running, tick, decisions, chunk tick, chunks, pending, observed, chunk age, look;
//   observations (history, observation), oldest first;  poses (history, pose);
//   chunk (horizon, action_dim);  the chunks before it, the last one first.
// A view: owns nothing.
class InstanceState {
 public:
  InstanceState(const StateShape& shape, mjtNum* state) : shape_(shape), state_(state) {}

  // False for memory that no Clear has seen (zeros that a host wrote, another model's state).
  bool Valid() const;
  // Before the first observation of an episode with this seed.
  void Clear(uint64_t seed);
  // Drops observations and chunks, after a jump in time; seed and decisions go on.
  void Forget();

  uint64_t seed() const { return static_cast<uint64_t>(state_[kSeed]); }
  void set_seed(uint64_t seed) { state_[kSeed] = static_cast<mjtNum>(seed); }
  // The policy failed: the control is held until the next reset.
  bool failed() const { return state_[kRunning] == 0; }
  void set_failed() { state_[kRunning] = 0; }
  // The control tick handled last; kNoTick before the first.
  int64_t tick() const { return static_cast<int64_t>(state_[kTick]); }
  void set_tick(int64_t tick) { state_[kTick] = static_cast<mjtNum>(tick); }
  // Decisions taken since Clear; the index of the next one.
  uint32_t decisions() const { return static_cast<uint32_t>(state_[kDecisions]); }
  // The tick whose observation the current chunk answers.
  int64_t chunk_tick() const { return static_cast<int64_t>(state_[kChunkTick]); }
  // Chunks that are valid: the current one and those before it, `kept` at most.
  int chunks() const { return std::min(chunks_in_a_row(), shape_.kept); }
  // Chunks that were begun one after the other since Clear or Forget.
  int chunks_in_a_row() const { return static_cast<int>(state_[kChunks]); }

  // While the current chunk is pending, of the one before it: control steps from the observation
  // that it answers to the decision that took it, 0 unless it was taken again. -1: there is none.
  int chunk_age() const { return chunks_in_a_row() > 1 ? static_cast<int>(state_[kChunkAge]) : -1; }
  void set_chunk_age(int age) { state_[kChunkAge] = age; }

  // The current chunk is being decided: its numbers are not there yet. They are a function of the
  // observations, which stay as they are until then.
  bool pending() const { return state_[kPending] != 0; }

  // An observation was made since Clear or Forget.
  bool observed() const { return state_[kObserved] != 0; }
  // The look (pictures/look.h) of the model at the newest observation; 0: the policy has no camera.
  uint64_t look() const { return static_cast<uint64_t>(state_[kLook]); }
  void set_look(uint64_t look) { state_[kLook] = static_cast<mjtNum>(look); }
  // All numbers but the tick: while they are the same, so is the pending decision.
  std::vector<mjtNum> AllButTick() const;

  // Makes room for an observation at the newest place; the first one fills all places.
  void PushObservation(std::span<const mjtNum> observation, std::span<const mjtNum> pose);
  // Begins the decision of `tick`: the current chunk becomes the one before, and a pending one
  // the current.
  void BeginChunk(int64_t tick);
  // Takes `actions` (horizon x action_dim) as the pending chunk.
  void FinishChunk(std::span<const float> actions);

  std::span<const mjtNum> observation(int slot) const;
  std::span<const mjtNum> pose(int slot) const;
  // The current chunk, or the one `ago` decisions before it, less than `kept`.
  std::span<const mjtNum> chunk(int ago = 0) const;
  std::span<const mjtNum> previous_chunk() const { return chunk(1); }

  static constexpr int64_t kNoTick =
      -2'000'000'000'000'000;  // below all ticks, as its successor is

 private:
  friend struct StateShape;
  enum Field {
    kLayout,
    kSeed,
    kRunning,
    kTick,
    kDecisions,
    kChunkTick,
    kChunks,
    kPending,
    kObserved,
    kChunkAge,
    kLook,
    kHeader
  };

  int ChunkOffset() const { return kHeader + shape_.history * (shape_.observation + shape_.pose); }

  StateShape shape_;
  mjtNum* state_;
};

// Largest seed that plugin_state holds exactly.
inline constexpr uint64_t kMaxSeed = uint64_t{1} << 53;

// Instances of the diffusion policy in a model.
std::vector<int> PolicyInstances(const mjModel* model);

// Gives the episode that starts in `data` its own seed, in place of the attribute `seed`: to be
// called after mj_resetData and before the first step. All instances of the model get it.
void SetEpisodeSeed(const mjModel* model, mjData* data, uint64_t seed);

// True if a policy in `data` failed since the last reset and holds its control.
bool PolicyFailed(const mjModel* model, const mjData* data);

// Decisions taken in `data` since the last reset, all instances together.
uint32_t PolicyDecisions(const mjModel* model, const mjData* data);

}  // namespace mjp

#endif  // PLUGIN_STATE_H_

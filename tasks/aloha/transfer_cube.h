#ifndef TASKS_ALOHA_TRANSFER_CUBE_H_
#define TASKS_ALOHA_TRANSFER_CUBE_H_

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <span>

#include "tasks/aloha/situation.h"
#include "tasks/physics/model.h"

namespace mjp::app {

// One simulation of ALOHA TransferCube (models/aloha/transfer_cube.xml), with gym-aloha's order of
// calls: its data is what an observation is made of, contacts included.
class TransferCube {
 public:
  // Throws Error where the model cannot be loaded.
  TransferCube();

  static constexpr int kSteps = 400;  // of an episode
  static constexpr int kRewards = 4;  // the largest reward: success

  // Starts as gym-aloha's reset(seed).
  void Start(uint32_t seed);
  // Starts with the cube at `pose`: x, y, z, quaternion.
  void Start(std::span<const mjtNum, 7> pose);
  // One control step of 0.02 s. Returns its reward, 0 to 4. Throws Error where the physics diverges
  // or the action is not finite.
  int Step(const AlohaNumbers& action);
  // The reward of where the simulation is.
  int Reward() const;
  // Whether the left hand alone holds the cube, above the table.
  bool HandedOver() const;
  // What a policy sees but for pictures.
  AlohaNumbers State() const;

  const mjModel* model() const { return model_.get(); }
  mjData* data() { return data_.get(); }
  const CubeScene& scene() const { return scene_; }

 private:
  ModelPtr model_;
  DataPtr data_;
  CubeScene scene_;
  int home_;                  // keyframe
  int cube_;                  // address of the cube in qpos
  int right_, left_, table_;  // addresses in sensordata
};

}  // namespace mjp::app

#endif  // TASKS_ALOHA_TRANSFER_CUBE_H_

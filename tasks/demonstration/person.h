#ifndef TASKS_DEMONSTRATION_PERSON_H_
#define TASKS_DEMONSTRATION_PERSON_H_

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasks/demonstration/action_ranges.h"
#include "tasks/demonstration/demonstrator.h"
#include "tasks/mjcf/task_file.h"
#include "tasks/physics/model.h"

namespace mjp::app {

// What a person asks for, as long as it is held: shares of full speed from -1 to 1.
struct DriveInput {
  std::array<double, 3> move = {};  // to the right, away, up, as the person sees it
  std::array<double, 3> turn = {};  // about these
  double heading = 0;               // from the world's x axis to the person's right, radians
  double squeeze = 0;               // of the number below
  int number = -1;                  // of the action; -1: the first that does not move the hand
};

// A person who drives a robot. Where position servos move a hand, the hand is driven: it follows a
// target in space, by damped least squares over their joints (Wampler 1986). Numbers of the action
// that do not move it, or all where there is no hand, are driven one by one: a servo keeps its
// place, a motor goes back to where the episode began when it is let go.
class Person : public Demonstrator {
 public:
  // `hand`: a site or body; empty: attribute trail, else the last link before a gripper. `file`
  // must outlive this. Throws Error for a name that the model lacks or that no servo moves, and an
  // actuator without a range.
  Person(const TaskFile& file, const std::string& hand);

  void Begin(uint32_t seed, const mjModel* model, const mjData* data) override;
  void Act(const mjModel* model, const mjData* data, std::span<mjtNum> action) override;

  // Goes on from where `data` is, in the same episode.
  void Resume(const mjData* data);

  // What is held from now on.
  void Drive(const DriveInput& input) { input_ = input; }
  // Moves the target at once by (x, y, z) of the world.
  void Drag(const std::array<double, 3>& by);

  bool has_hand() const { return hand_ >= 0; }
  const std::string& hand_name() const { return hand_name_; }
  const std::array<mjtNum, 3>& target() const { return target_; }
  // A number of the action that does not move the hand; negative: all of them do.
  int gripper() const { return gripper_; }
  int numbers() const { return static_cast<int>(ranges_.size()); }

 private:
  // A joint that a position servo holds at slope x control + offset.
  struct Servo {
    int control, number, joint;
    mjtNum slope, offset;
  };

  std::vector<Servo> FindServos() const;
  void FindHand(const std::string& name);
  int DefaultHand() const;
  bool Moves(const Servo& servo, int body) const;
  void TakeHandPose(const mjData* data);
  void MoveTarget();
  void Follow(const mjData* data);
  bool Improve(std::span<const mjtNum> error);
  void Error(std::span<mjtNum> error) const;
  void SetNumbers();
  mjtNum Reach(const mjData* data) const;

  const TaskFile& file_;
  const std::vector<ActionRange> ranges_;
  std::vector<Servo> servos_, arm_;  // all, and those that move the hand
  std::vector<bool> keeps_;          // whether a number stays where it is let go
  bool hand_is_site_ = false;
  int hand_ = -1;  // site or body; negative: none
  std::string hand_name_;
  int gripper_ = -1;
  DataPtr scratch_;  // of the file's model, for kinematics
  DriveInput input_;
  std::array<mjtNum, 3> target_ = {};
  std::array<mjtNum, 4> target_turn_ = {1, 0, 0, 0};
  mjtNum reach_ = 1;
  std::vector<mjtNum> rest_, action_;  // numbers of an action: where the episode began, now
};

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_PERSON_H_

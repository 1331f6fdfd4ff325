#ifndef PLUGIN_MODEL_BINDING_H_
#define PLUGIN_MODEL_BINDING_H_

#include <mujoco/mujoco.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plugin/model/config.h"

// Names in a model -> where their numbers stand in mjData. Addresses only, so one binding serves
// every mjData of its model.

namespace mjp {

enum class Unit { kOther, kLength, kAngle };

// One number that a policy reads or writes.
struct Quantity {
  std::string name;  // as the attribute has it
  Unit unit;         // of what it is in the model, where that is known
  double scale = 1;  // the policy's number is the model's x scale + offset
  double offset = 0;

  double ToModel(double value) const { return (value - offset) / scale; }
};

// Which components of a quantity are meant: [begin, end), all where end < 0.
struct Components {
  int begin = 0, end = -1;
};

// Cuts the brackets off "name[1]" or "name[0:2]" and returns what they say; none: they are wrong.
std::optional<Components> CutComponents(std::string& name);

// Numbers of a simulation that a policy observes: positions of joints, sites and bodies, sensors.
class ObservationBinding {
 public:
  // Each name is that of a joint (its qpos), a sensor, a site or a body (its position in the
  // world), with an optional kind ("site:tip") and an optional choice of components ("tip[0:2]",
  // "tip[1]"). The policy's number is the model's x gain + offset. Throws Error naming `attribute`
  // and the name that the model lacks or that has two meanings.
  ObservationBinding(const mjModel* model, const char* attribute,
                     const std::vector<std::string>& names, const LinearMap& map);

  int size() const { return size_; }                                       // numbers
  const std::vector<Quantity>& quantities() const { return quantities_; }  // (size)
  // Writes the numbers, in the policy's units, into out (size).
  void Read(const mjData* data, std::span<mjtNum> out) const;

 private:
  struct Range {
    mjtNum* mjData::*field;
    int begin, count;
    Unit unit;
  };
  static Range Resolve(const mjModel* model, const char* attribute, const std::string& name);

  std::vector<Range> ranges_;
  std::vector<Quantity> quantities_;
  std::vector<double> gain_, offset_;  // (size)
  int size_ = 0;
};

// Throws Error where the model has no camera of that name.
void CheckCamera(const mjModel* model, const std::string& camera);

// The actuator of that name, or else the only one that drives the joint of that name; -1: none.
int FindActuator(const mjModel* model, const std::string& name);

// Controls that a policy drives.
class ControlBinding {
 public:
  // A control is number x gain + offset of the action's number that is clipped and divided by its
  // scale. Throws Error naming the actuator that the model lacks or that is named twice, and an
  // index that leaves out a number of the action.
  ControlBinding(const mjModel* model, const Config& config);

  int size() const { return static_cast<int>(addresses_.size()); }  // controls
  int action_size() const { return action_size_; }                  // numbers of an action
  // (size): which number of the action each control takes.
  const std::vector<int>& indices() const { return indices_; }
  const std::vector<int>& addresses() const { return addresses_; }  // (size), in ctrl
  // (size); the unit is that of the joint which a position servo drives.
  const std::vector<Quantity>& quantities() const { return quantities_; }
  // Writes action (action_size, the policy's units) into the controls of `data`.
  void Write(std::span<const mjtNum> action, mjData* data) const;
  // The name of an actuator of `model` that both drive; empty: there is none.
  std::string SharedWith(const mjModel* model, const ControlBinding& other) const;
  // What control `i` is for a number of an action, and the number for a control.
  mjtNum ToControl(int i, mjtNum value) const;
  mjtNum ToAction(int i, mjtNum control) const;
  // The same without action_clip, and whether that cuts the number by more than a hundredth of what
  // it leaves: rounding is no wrong unit.
  mjtNum ToUnclippedControl(int i, mjtNum value) const;
  bool Clips(int i, mjtNum value) const;
  // Between what a number of an action is cut for control `i`, in the policy's unit; none: no clip.
  std::optional<std::pair<mjtNum, mjtNum>> Clip(int i) const;

 private:
  void CheckIndices() const;

  std::vector<int> addresses_;  // in ctrl
  std::vector<int> indices_;    // (size)
  int action_size_ = 0;
  std::vector<Quantity> quantities_;
  std::vector<double> scale_, gain_, offset_;  // (size)
  std::vector<double> clip_;                   // (size, 2); empty: none
};

}  // namespace mjp

#endif  // PLUGIN_MODEL_BINDING_H_

#ifndef PLUGIN_MODEL_BINDING_H_
#define PLUGIN_MODEL_BINDING_H_

#include <mujoco/mujoco.h>

#include <span>
#include <string>
#include <vector>

// Names in a model -> where their numbers stand in mjData. Addresses only, so one binding serves
// every mjData of its model.

namespace mjp {

enum class Unit { kOther, kLength, kAngle };

// One number that a policy reads or writes.
struct Quantity {
  std::string name;  // as the attribute has it
  Unit unit;         // of what it is in the model, where that is known
  double scale;      // the policy's units per unit of the model
};

// Numbers of a simulation that a policy observes: positions of joints, sites and bodies, sensors.
class ObservationBinding {
 public:
  // Each name is that of a joint (its qpos), a sensor, a site or a body (its position in the
  // world), with an optional kind ("site:tip") and an optional choice of components ("tip[0:2]",
  // "tip[1]"). `scale` (1, or one per number) is the policy's unit per unit of the model. Throws
  // Error naming `attribute` and the name that the model lacks or that has two meanings.
  ObservationBinding(const mjModel* model, const char* attribute,
                     const std::vector<std::string>& names, const std::vector<double>& scale);

  int size() const { return size_; }                                       // numbers
  const std::vector<Quantity>& quantities() const { return quantities_; }  // (size)
  // Writes the numbers, scaled, into out (size).
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
  std::vector<double> scale_;  // (size)
  int size_ = 0;
};

// Controls that a policy drives.
class ControlBinding {
 public:
  // `scale` (1, or one per control) is the policy's unit per unit of control. Throws Error naming
  // the actuator that the model lacks or that is named twice.
  ControlBinding(const mjModel* model, const std::vector<std::string>& actuators,
                 const std::vector<double>& scale);

  int size() const { return static_cast<int>(addresses_.size()); }
  const std::vector<int>& addresses() const { return addresses_; }  // (size), in ctrl
  // (size); the unit is that of the joint which a position servo drives.
  const std::vector<Quantity>& quantities() const { return quantities_; }
  // Writes action (size, the policy's units) into the controls of `data`.
  void Write(std::span<const mjtNum> action, mjData* data) const;
  // The name of an actuator of `model` that both drive; empty: there is none.
  std::string SharedWith(const mjModel* model, const ControlBinding& other) const;
  // The control that number `i` of an action stands for.
  mjtNum ToControl(int i, mjtNum value) const { return value / scale_[i]; }

 private:
  std::vector<int> addresses_;  // in ctrl
  std::vector<Quantity> quantities_;
  std::vector<double> scale_;  // (size)
};

}  // namespace mjp

#endif  // PLUGIN_MODEL_BINDING_H_

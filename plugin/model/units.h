#ifndef PLUGIN_MODEL_UNITS_H_
#define PLUGIN_MODEL_UNITS_H_

#include <mujoco/mujoco.h>

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plugin/model/binding.h"
#include "policy/checkpoint/network.h"

namespace mjp {

// What training saw of number `i` of a feature, in the policy's unit: lowest and highest, or three
// standard deviations around the mean. None: the statistics do not tell.
std::optional<std::pair<double, double>> TrainedRange(const FeatureStats& stats, size_t i);

// Whether the engine cuts `control` to the ctrlrange at `address` of ctrl. A hundredth of the range
// beyond it is none: rounding is no wrong unit.
bool IsCut(const mjModel* model, int address, mjtNum control);

// Looks for the signs of a scale that was forgotten or is the wrong way round, which no error of a
// network ever tells, and says each once (plugin/notices.h): statistics that no joint of the model
// can come near to, observations far outside of them, controls that are always cut.
class UnitCheck {
 public:
  // Describes what `instance` reads and writes; `stats` are those of its checkpoint.
  UnitCheck(const NormalizerStats& stats, const ObservationBinding& state,
            const ObservationBinding& environment, const ControlBinding& controls);

  // Looks at an observation (state, then environment), in the policy's units.
  void Observed(const mjModel* model, int instance, std::span<const mjtNum> observation);
  // Looks at the controls of this step, which were made of `action` (numbers of an action, before
  // action_clip); empty: the policy has not acted yet.
  void Controlled(const mjModel* model, int instance, const mjData* data,
                  std::span<const mjtNum> action);
  // Whether the range or action_clip cut control `i` of the last step.
  bool Cut(int i) const { return cut_[i]; }

 private:
  // A number with what training saw of it.
  struct Term {
    Quantity quantity;
    double low, high;  // equal: nothing is known
  };
  // `indices`: where in the statistics each stands; empty: in order.
  static std::vector<Term> Terms(const std::vector<Quantity>& quantities, const FeatureStats& stats,
                                 const std::vector<int>& indices = {});
  void CheckStatistics(const mjModel* model, int instance) const;
  static void CheckReach(const mjModel* model, int instance, const std::vector<Term>& terms,
                         const char* attribute);
  static void CheckValues(const mjModel* model, int instance, const std::vector<Term>& terms,
                          std::span<const mjtNum> values, const char* attribute);

  std::vector<Term> state_, environment_, action_;
  ControlBinding controls_;
  std::vector<bool> cut_;       // each control, in the last step
  std::vector<mjtNum> inside_;  // simulated time at which each was last within its range
  mjtNum last_ = std::numeric_limits<mjtNum>::quiet_NaN();  // time of the step before
  bool checked_ = false;
  bool said_clamped_ = false;  // by this simulation or another one
};

}  // namespace mjp

#endif  // PLUGIN_MODEL_UNITS_H_

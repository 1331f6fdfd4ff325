#ifndef PLUGIN_MODEL_OUTLINE_H_
#define PLUGIN_MODEL_OUTLINE_H_

#include <mujoco/mujoco.h>

#include "plugin/model/binding.h"
#include "plugin/model/config.h"

namespace mjp {

// What an instance's attributes say of its model, without a checkpoint.
struct Outline {
  // Throws Error for an attribute that is wrong or names what the model lacks.
  Outline(const mjModel* model, int instance);

  Config config;
  ObservationBinding state, environment;
  ControlBinding controls;
};

// While one lives, models that are compiled on this thread have their policies left out: attributes
// and names are checked, no checkpoint is read, and simulations of such a model move as if the
// instance were not there. So do those that are made on this thread of any other model. For
// programs that look at a model, and simulations that only draw.
class PoliciesLeftOut {
 public:
  PoliciesLeftOut();
  ~PoliciesLeftOut();
  PoliciesLeftOut(const PoliciesLeftOut&) = delete;
  PoliciesLeftOut& operator=(const PoliciesLeftOut&) = delete;

  // Whether one lives on this thread.
  static bool Now();
};

// Whether `model` was compiled so that this instance is left out.
bool IsLeftOut(const mjModel* model, int instance);

}  // namespace mjp

#endif  // PLUGIN_MODEL_OUTLINE_H_

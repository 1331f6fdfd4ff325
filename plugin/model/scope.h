#ifndef PLUGIN_MODEL_SCOPE_H_
#define PLUGIN_MODEL_SCOPE_H_

#include <mujoco/mujoco.h>

#include "plugin/model/config.h"

namespace mjp {

// The attributes of `instance` with names as the model has them. A model that is attached to
// another gets a prefix or suffix on every name, also on the instance's own, but not in its
// attributes. The names are therefore looked for with what the instance's name begins and ends with
// ("L_ax" for the instance "L_policy") before they are taken as they stand: all of them or none,
// and config.prefix and suffix tell which. Where all stand in the model as written too, only a
// prefix that ends with a separator counts. Throws Error where then some, but not all, are there
// with it.
Config InOwnScope(const mjModel* model, int instance, Config config);

}  // namespace mjp

#endif  // PLUGIN_MODEL_SCOPE_H_

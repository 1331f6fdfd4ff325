#include "plugin/register.h"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

#include "plugin/guard.h"
#include "plugin/notices.h"
#include "plugin/pictures/picture_source.h"
#include "plugin/policy_instance.h"

namespace mjp {
namespace {

// Only the compiler asks. 0 where the attributes are wrong: its trial instance then says why.
int StateSize(const mjModel* model, int instance) {
  model_in_compiler = model;
  try {
    ForgetNotices(model, instance);
    return DiffusionPolicy::StateSize(model, instance);
  } catch (const std::exception&) {
    return 0;
  }
}

// Within the compiler -1 refuses the model. Anywhere else it would end the process: an instance
// that cannot be made there stays null, and the control is held.
int Init(const mjModel* model, mjData* data, int instance) {
  data->plugin_data[instance] = 0;
  const bool trial = WithinCompiler(model);
  const bool made = Guarded(false, [&] {
    data->plugin_data[instance] =
        reinterpret_cast<uintptr_t>(std::make_unique<DiffusionPolicy>(model, instance).release());
    return true;
  });
  if (made || !trial) return 0;
  model_in_compiler = nullptr;
  return -1;
}

void Reset(const mjModel* model, mjtNum* state, void* object, int instance) {
  if (object) {
    static_cast<DiffusionPolicy*>(object)->Reset(state);
  } else {
    std::fill_n(state, model->plugin_statenum[instance], mjtNum{0});
  }
}

void Compute(const mjModel* model, mjData* data, int instance, int) {
  DiffusionPolicy* policy = DiffusionPolicy::In(data, instance);
  if (!policy) return;
  Guarded(false, [&] {
    policy->Compute(model, data);
    return true;
  });
}

void Advance(const mjModel* model, mjData*, int instance) {
  if (WithinCompiler(model)) return;
  Guarded(false, [&] {
    NoticeFlags(model, instance);
    return true;
  });
}

void Visualize(const mjModel* model, mjData* data, const mjvOption*, mjvScene* scene,
               int instance) {
  DiffusionPolicy* policy = DiffusionPolicy::In(data, instance);
  if (!policy) return;
  Guarded(false, [&] {
    policy->Visualize(model, data, scene);
    return true;
  });
}

void Destroy(mjData* data, int instance) {
  const DiffusionPolicy* policy = DiffusionPolicy::In(data, instance);
  if (policy && policy->trial()) model_in_compiler = nullptr;
  delete policy;
  data->plugin_data[instance] = 0;
}

bool Register() {
  if (mj_version() != mjVERSION_HEADER) {
    mju_warning("diffusion policy: compiled for MuJoCo %d, this is %d: not registered",
                mjVERSION_HEADER, mj_version());
    return false;
  }
  int slot;
  if (mjp_getPlugin(kPluginName, &slot)) {
    mju_warning("diffusion policy: %s is registered already by another library", kPluginName);
    return false;
  }
  mjpPlugin plugin;
  mjp_defaultPlugin(&plugin);
  plugin.name = kPluginName;
  plugin.nattribute = static_cast<int>(std::size(kConfigAttributes));
  plugin.attributes = kConfigAttributes;
  plugin.capabilityflags = mjPLUGIN_SENSOR;
  plugin.needstage = mjSTAGE_POS;  // before the controls are read, once per step
  plugin.nstate = StateSize;
  plugin.nsensordata = [](const mjModel*, int, int) { return 0; };
  plugin.init = Init;
  plugin.destroy = Destroy;
  plugin.reset = Reset;
  plugin.compute = Compute;
  plugin.advance = Advance;
  plugin.visualize = Visualize;
  mjp_registerPlugin(&plugin);
  return true;
}

}  // namespace

bool RegisterPlugin() {
  static const bool registered = Register();
  return registered;
}

}  // namespace mjp

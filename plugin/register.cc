#include "plugin/register.h"

#include <link.h>
#include <mujoco/mujoco.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "plugin/guard.h"
#include "plugin/instances.h"
#include "plugin/model/outline.h"
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
    if (PoliciesLeftOut::Now()) return 0;
    return PolicyInstance::StateSize(model, instance);
  } catch (const std::exception&) {
    return 0;
  }
}

// True within the compiler of the mjData in which it finds the lengths of muscles: it makes one for
// each of its threads, all before the one that ends the trial. It sets just these flags for them.
bool FindsLengths(const mjModel* model) {
  constexpr int kFlags = mjDSBL_FRICTIONLOSS | mjDSBL_CONTACT | mjDSBL_SPRING | mjDSBL_DAMPER |
                         mjDSBL_GRAVITY | mjDSBL_ACTUATION;
  return model->opt.disableflags == kFlags;
}

// Within the compiler -1 refuses the model. Anywhere else it would end the process: an instance
// that cannot be made there stays null, and the control is held.
int Init(const mjModel* model, mjData* data, int instance) {
  data->plugin_data[instance] = 0;
  const bool trial = WithinCompiler(model);
  if (IsLeftOut(model, instance) || (!trial && PoliciesLeftOut::Now())) return 0;
  const bool made = Guarded(false, [&] {
    if (PoliciesLeftOut::Now()) {
      Outline(model, instance);
      return true;
    }
    KeepInstance(data, instance, data->plugin_state + model->plugin_stateadr[instance],
                 std::make_unique<PolicyInstance>(model, instance));
    return true;
  });
  if (!trial) return 0;
  const bool last = !FindsLengths(model) && instance == PolicyInstances(model).back();
  if (!made || last) model_in_compiler = nullptr;
  return made ? 0 : -1;
}

// A state of zeros begins anew at the next step, too.
void Reset(const mjModel* model, mjtNum* state, void* number, int instance) {
  if (PolicyInstance* policy = FindInstanceOfState(number, state)) {
    policy->Reset(state);
  } else {
    std::fill_n(state, model->plugin_statenum[instance], mjtNum{0});
  }
}

void Compute(const mjModel* model, mjData* data, int instance, int) {
  if (WithinReset(model, data)) return;
  PolicyInstance* policy = FindInstance(data, instance);
  if (!policy) return;
  Guarded(false, [&] {
    policy->Compute(model, data);
    return true;
  });
}

void Advance(const mjModel* model, mjData* data, int instance) {
  PolicyInstance* policy = FindInstance(data, instance);
  if (!policy || policy->trial()) return;
  Guarded(false, [&] {
    policy->Stepped(model, data);
    NoticeFlags(model, instance);
    NoticeDisabledGroups(model, instance, policy->controls());
    NoticeSleep(model, data, instance, policy->controls());
    return true;
  });
}

void Visualize(const mjModel* model, mjData* data, const mjvOption*, mjvScene* scene,
               int instance) {
  PolicyInstance* policy = FindInstance(data, instance);
  if (!policy) return;
  Guarded(false, [&] {
    policy->Visualize(model, data, scene);
    return true;
  });
}

// The libraries of MuJoCo in this process, whoever loaded them.
std::vector<std::string> Engines() {
  std::vector<std::string> engines;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        const std::string path = info->dlpi_name;
        const std::string name = path.substr(path.rfind('/') + 1);
        if (name.starts_with("libmujoco.so")) {
          static_cast<std::vector<std::string>*>(found)->push_back(path);
        }
        return 0;
      },
      &engines);
  return engines;
}

// The loader finds this library an engine of its own where the host's is of another version: two
// tables of plugins, and the host never looks into the one that this is entered in.
void WarnOfTwoEngines() {
  const std::vector<std::string> engines = Engines();
  if (engines.size() < 2) return;
  std::string all;
  for (const std::string& engine : engines) all += (all.empty() ? "" : " and ") + engine;
  mju_warning(
      "mjpolicy: this process has two engines, %.600s: a host with another one than MuJoCo "
      "%s does not find the plugin; install that version (in Python: mujoco-core)",
      all.c_str(), mj_versionString());
}

bool Register() {
  WarnOfTwoEngines();
  if (mj_version() != mjVERSION_HEADER) {
    mju_warning("mjpolicy: compiled for MuJoCo %d, this is %d: not registered", mjVERSION_HEADER,
                mj_version());
    return false;
  }
  int slot;
  if (mjp_getPlugin(kPluginName, &slot)) {
    mju_warning("mjpolicy: %s is registered already by another library", kPluginName);
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
  plugin.destroy = DropInstance;
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

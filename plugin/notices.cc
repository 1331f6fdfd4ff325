#include "plugin/notices.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/fork.h"
#include "plugin/guard.h"

namespace mjp {
namespace {

using InstanceKey = std::pair<size_t, int>;  // of its model, its number there

struct Notices {
  ForkMutex mutex;
  std::set<std::tuple<InstanceKey, Notice, std::string>> said;  // with the cause
};

// The same for a model, its copies and what was saved of it, also within the compiler.
size_t ModelKey(const mjModel* model) {
  const auto hash = [](const char* text, auto size) {
    return std::hash<std::string_view>()(std::string_view(text, static_cast<size_t>(size)));
  };
  return hash(model->names, model->nnames) ^ (3 * hash(model->plugin_attr, model->npluginattr));
}

bool Drives(const mjModel* model, const ControlBinding& controls, int actuator) {
  const int begin = model->actuator_ctrladr[actuator];
  return std::ranges::any_of(controls.addresses(), [&](int address) {
    return address >= begin && address < begin + model->actuator_ctrlnum[actuator];
  });
}

void WarnOfActuator(const mjModel* model, int instance, int actuator, const std::string& why) {
  const char* name = mj_id2name(model, mjOBJ_ACTUATOR, actuator);
  Warn((InstanceName(model, instance) + " cannot move actuator \"" + (name ? name : "") +
        "\": " + why)
           .c_str());
}

// never destroyed: a host may step while the process ends
Notices& TheNotices() {
  static Notices& notices = *new Notices;
  return notices;
}

}  // namespace

std::string InstanceName(const mjModel* model, int instance) {
  const char* name = mj_id2name(model, mjOBJ_PLUGIN, instance);
  return "instance " + (name ? "\"" + std::string(name) + "\"" : std::to_string(instance));
}

bool FirstNotice(const mjModel* model, int instance, Notice notice, const std::string& cause) {
  const InstanceKey key(ModelKey(model), instance);
  Notices& notices = TheNotices();
  const std::lock_guard lock(notices.mutex);
  return notices.said.emplace(key, notice, cause).second;
}

void ForgetNotice(const mjModel* model, int instance, Notice notice) {
  const InstanceKey key(ModelKey(model), instance);
  Notices& notices = TheNotices();
  const std::lock_guard lock(notices.mutex);
  std::erase_if(notices.said, [&](const auto& each) {
    return std::get<InstanceKey>(each) == key && std::get<Notice>(each) == notice;
  });
}

void ForgetNotices(const mjModel* model, int instance) {
  const InstanceKey key(ModelKey(model), instance);
  Notices& notices = TheNotices();
  const std::lock_guard lock(notices.mutex);
  std::erase_if(notices.said, [&](const auto& each) { return std::get<InstanceKey>(each) == key; });
}

void NoticeFlags(const mjModel* model, int instance) {
  constexpr int kFlags = mjDSBL_SENSOR | mjDSBL_ACTUATION;
  const int off = model->opt.disableflags & kFlags;
  if (!off) return;
  const bool sensors = (off & mjDSBL_SENSOR) != 0;
  if (!FirstNotice(model, instance, sensors ? Notice::kSensorsOff : Notice::kActuationOff)) return;
  Warn((InstanceName(model, instance) + " cannot act: " +
        (sensors ? "sensors are disabled, and it is called with them; enable \"sensor\""
                 : "actuation is disabled, so its controls move nothing; enable \"actuation\"") +
        " in the model's <option><flag>")
           .c_str());
}

void NoticeDisabledGroups(const mjModel* model, int instance, const ControlBinding& controls) {
  if (model->opt.disableactuator == 0) return;
  for (int id = 0; id < model->nactuator; ++id) {
    const int group = model->actuator_group[id];
    if (group < 0 || group > 30 || !(model->opt.disableactuator & (1 << group))) continue;
    if (!Drives(model, controls, id)) continue;
    if (!FirstNotice(model, instance, Notice::kGroupOff)) return;
    WarnOfActuator(model, instance, id,
                   "its group " + std::to_string(group) +
                       " is disabled; take it out of <option actuatorgroupdisable>");
    return;
  }
}

void NoticeSleep(const mjModel* model, const mjData* data, int instance,
                 const ControlBinding& controls) {
  if (!(model->opt.enableflags & mjENBL_SLEEP) || data->ntree_awake == model->ntree) return;
  for (int id = 0; id < model->nactuator; ++id) {
    // an adhesion moves nothing without a contact, either
    const bool asleep = data->moment_rownnz[model->actuator_outadr[id]] == 0 &&
                        model->actuator_trntype[id] != mjTRN_BODY;
    if (!asleep || !Drives(model, controls, id)) continue;
    if (!FirstNotice(model, instance, Notice::kAsleep)) return;
    WarnOfActuator(model, instance, id,
                   "what it moves has fallen asleep, and controls do not wake it; write "
                   "sleep=\"never\" at its body");
    return;
  }
}

}  // namespace mjp

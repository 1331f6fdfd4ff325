#include "plugin/notices.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "base/fork.h"
#include "plugin/guard.h"

namespace mjp {
namespace {

struct Notices {
  ForkMutex mutex;
  std::set<std::pair<std::string, Notice>> said;
};

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

bool FirstNotice(const mjModel* model, int instance, Notice notice) {
  Notices& notices = TheNotices();
  const std::lock_guard lock(notices.mutex);
  return notices.said.emplace(InstanceName(model, instance), notice).second;
}

void ForgetNotices(const mjModel* model, int instance) {
  Notices& notices = TheNotices();
  const std::lock_guard lock(notices.mutex);
  const std::string name = InstanceName(model, instance);
  std::erase_if(notices.said, [&](const auto& each) { return each.first == name; });
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
    const auto driven = [&](int address) {
      const int begin = model->actuator_ctrladr[id];
      return address >= begin && address < begin + model->actuator_ctrlnum[id];
    };
    if (!std::ranges::any_of(controls.addresses(), driven)) continue;
    if (!FirstNotice(model, instance, Notice::kGroupOff)) return;
    const char* name = mj_id2name(model, mjOBJ_ACTUATOR, id);
    Warn((InstanceName(model, instance) + " cannot move actuator \"" + (name ? name : "") +
          "\": its group " + std::to_string(group) +
          " is disabled; take it out of <option actuatorgroupdisable>")
             .c_str());
    return;
  }
}

}  // namespace mjp

#include "tasks/demonstration/action_ranges.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/error.h"

namespace mjp::app {

std::vector<ActionRange> ActionRanges(const TaskFile& file) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const ControlBinding& controls = file.policy().controls;
  const std::vector<double>& clip = file.policy().config.action_clip;
  const mjModel* model = file.model();
  std::vector<ActionRange> ranges(static_cast<size_t>(controls.action_size()),
                                  {-kInfinity, kInfinity});
  for (int i = 0; i < controls.size(); ++i) {
    ActionRange& range = ranges[controls.indices()[i]];
    const auto narrow = [&range](double a, double b) {
      range.low = std::max(range.low, std::min(a, b));
      range.high = std::min(range.high, std::max(a, b));
    };
    const int address = controls.addresses()[i];
    const size_t at = clip.size() == 2 ? 0 : 2 * static_cast<size_t>(i);
    if (!clip.empty()) narrow(clip[at], clip[at + 1]);
    if (model->actuator_ctrllimited[address]) {
      const mjtNum* control = model->actuator_ctrlrange + 2 * address;
      narrow(controls.ToAction(i, control[0]), controls.ToAction(i, control[1]));
    }
    if (range.high - range.low < kInfinity && range.low <= range.high) continue;
    throw BadInput("actuator " + controls.quantities()[i].name +
                   " has no range to choose actions from: give it a ctrlrange, or the policy an "
                   "attribute action_clip");
  }
  return ranges;
}

void ActionOf(const ControlBinding& controls, const mjData* data, std::span<mjtNum> action) {
  for (int i = controls.size() - 1; i >= 0; --i) {
    action[controls.indices()[i]] = controls.ToAction(i, data->ctrl[controls.addresses()[i]]);
  }
}

}  // namespace mjp::app

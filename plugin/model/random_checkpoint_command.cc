#include "plugin/model/random_checkpoint_command.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text_stream.h"
#include "plugin/model/binding.h"

namespace mjp {
namespace {

// A word of a shell's command.
std::string Quoted(const std::string& word) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// The largest control, in the policy's unit; 0: none has a range.
double LargestControl(const mjModel* model, const ControlBinding& controls) {
  double largest = 0;
  for (int i = 0; i < controls.size(); ++i) {
    const int address = controls.addresses()[i];
    if (!model->actuator_ctrllimited[address]) continue;
    for (const int end : {0, 1}) {
      largest = std::max(
          largest, std::abs(controls.ToAction(i, model->actuator_ctrlrange[2 * address + end])));
    }
  }
  return largest;
}

}  // namespace

std::string RandomCheckpointCommand(const mjModel* model, const Config& config,
                                    const std::string& directory) try {
  const ObservationBinding state(model, "state", config.state, config.state_map);
  const ObservationBinding environment(model, "environment", config.environment,
                                       config.environment_map);
  const ControlBinding controls(model, config);
  if (config.cameras.empty()) return "";
  TextWriter text;
  text << "mjpolicy random-checkpoint " << Quoted(directory);
  if (config.cameras.size() > 1) {
    text << " --camera";
    for (const std::string& camera : config.cameras) {
      text << " " << Quoted("observation.images." + camera);
    }
  }
  // what is not as the command has it by itself
  if (state.size() != 2) text << " --state " << state.size();
  if (environment.size() != 0) text << " --environment " << environment.size();
  if (controls.action_size() != 2) text << " --action " << controls.action_size();
  const double range = LargestControl(model, controls);
  if (range > 0) text << " --range " << range;
  return text.str();
} catch (const Error&) {
  return "";
}

}  // namespace mjp

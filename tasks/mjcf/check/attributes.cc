#include "tasks/mjcf/check/attributes.h"

#include <algorithm>

#include "base/text_stream.h"
#include "plugin/pictures/instance_pictures.h"

namespace mjp::app {

std::vector<std::string> AttributeWarnings(const TaskFile& file, const PolicyConfig* config) {
  constexpr double kLongPeriod = 2;  // seconds
  std::vector<std::string> warnings;
  if (file.period() > kLongPeriod) {
    TextWriter text;
    text << "attribute period is " << file.period() << " s for one control step; is it meant as \""
         << file.period() << "ms\"?";
    warnings.push_back(text.str());
  }
  if (!config) return warnings;
  const std::string against = CamerasAgainstNames(file.policy().config.cameras, config->cameras);
  if (!against.empty()) warnings.push_back("the policy " + against);
  return warnings;
}

std::vector<std::string> CameraOrder(const TaskFile& file, const PolicyConfig& config) {
  const std::vector<std::string>& cameras = file.policy().config.cameras;
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min(cameras.size(), config.cameras.size()); ++i) {
    lines.push_back(config.cameras[i].name + " <- " + cameras[i]);
  }
  return lines;
}

void OverAtStart::See(const mjtNum* sensors) {
  int held = 0;  // what must hold for a while does not end an episode at once
  StepOutcome outcome;
  rules_.Judge(sensors, held, outcome);
  ++starts_;
  succeeded_ += outcome.success;
  failed_ += outcome.lost;
}

std::vector<std::string> OverAtStart::Warnings() const {
  std::vector<std::string> warnings;
  const auto add = [&](const std::string& what, int count) {
    if (count == 0) return;
    warnings.push_back(what + " holds already in " + std::to_string(count) + " of " +
                       std::to_string(starts_) + " starts; see task." + what + " and task.start");
  };
  add("success", succeeded_);
  add("failure", failed_);
  return warnings;
}

}  // namespace mjp::app

#include "tasks/mjcf/mjcf_task.h"

#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "policy/option_names.h"
#include "tasks/evaluation/plugin_attributes.h"
#include "tasks/mjcf/batch/mjcf_batch.h"
#include "tasks/mjcf/hosted.h"
#include "tasks/mjcf/pictures/requested_pictures.h"

namespace mjp::app {

MjcfTask::~MjcfTask() {
  if (model_) SetAttributesInstead({});
}

std::vector<PictureLook> MjcfTask::Looks(const PolicyConfig& config) const {
  return LooksOf(*file_, config);
}

std::unique_ptr<BatchSimulations> MjcfTask::MakeBatch(const EvaluationOptions& options,
                                                      const mjp::Policy& policy, int count) const {
  return std::make_unique<MjcfBatch>(file_, options, policy, count);
}

std::unique_ptr<HostedSimulation> MjcfTask::MakeHosted(const EvaluationOptions& options,
                                                       const mjp::PolicyConfig& config) const {
  const std::lock_guard lock(mutex_);
  if (!model_) {
    std::map<std::string, std::string> attributes =
        PluginAttributes(options, config, file_->period());
    attributes["checkpoint"] = std::filesystem::absolute(options.checkpoint).string();
    attributes.emplace("threads", "1");      // one simulation for each thread
    attributes.emplace("replan_after", "");  // the file's own was taken, or is not wanted
    SetAttributesInstead(attributes);        // also for the simulations that are made of the model
    model_ = LoadModel(file_->path());
    model_->opt.disableflags = file_->model()->opt.disableflags;
  }
  return std::make_unique<MjcfHosted>(file_, model_.get());
}

void TakeAttributes(const Config& config, EvaluationOptions& options) {
  PolicyOptions& policy = options.policy;
  const PolicyOptions& own = config.policy;
  SamplerOptions& sampler = policy.sampler;
  if (sampler.kind == SamplerKind::kAuto) sampler.kind = own.sampler.kind;
  if (sampler.steps == 0) sampler.steps = own.sampler.steps;
  if (!sampler.temperature) sampler.temperature = own.sampler.temperature;
  if (sampler.hold_noise == 0 && !options.hold_noise_given)
    sampler.hold_noise = own.sampler.hold_noise;
  sampler.prefix = sampler.prefix || own.sampler.prefix;
  if (sampler.warm_start == 0 && !options.warm_start_given)
    sampler.warm_start = own.sampler.warm_start;
  if (sampler.parallel_window == kAutoWindow) {
    sampler.parallel_window = own.sampler.parallel_window;
    sampler.parallel_tolerance = own.sampler.parallel_tolerance;
  }
  if (policy.backend == Backend::kAuto) policy.backend = own.backend;
  if (policy.precision == Precision::kAuto) policy.precision = own.precision;
  if (policy.instruction.empty()) policy.instruction = own.instruction;
  if (options.action_steps == 0) options.action_steps = config.action_steps;
  if (!options.replan_beyond) options.replan_beyond = config.replan_beyond;
  // no chunk is followed at all beyond 0
  if (options.replan_after == 0 && options.replan_beyond != 0)
    options.replan_after = config.replan_after;
  if (!options.conditions.latency) {
    const double steps = config.latency / config.period;
    options.conditions.latency = static_cast<int>(std::lround(steps));
    if (std::abs(steps - options.conditions.Latency()) > 1e-6) {
      throw BadInput(
          "attribute latency is no whole number of control steps, which evaluations "
          "need: change it, or period");
    }
  }
}

}  // namespace mjp::app

#include "tasks/evaluation/run_text.h"

#include <mujoco/mujoco.h>

#include "base/json.h"
#include "kernels/cpu/isa.h"
#include "policy/checkpoint/network_model.h"
#include "policy/option_names.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/results/run_differences.h"
#include "tasks/results/shard.h"

namespace mjp::app {
namespace {

void Add(const Settings& settings, Json& json) {
  for (const Setting& setting : settings) {
    std::visit([&](const auto& value) { json[setting.key] = value; }, setting.value);
  }
}

}  // namespace

std::string UnlikeTraining(const Task& task, const mjp::Policy& policy) {
  const mjp::PictureLooks trained = policy.checkpoint().network->trained_looks();
  if (trained.empty()) return "";
  const mjp::PolicyConfig& config = policy.config();
  const std::string unlike = mjp::UnlikeTraining(config.cameras, trained, task.Looks(config));
  return unlike.empty() ? "" : "the policy " + unlike;
}

std::string RunText(const Task& task, const EvaluationOptions& options, const mjp::Policy& policy,
                    const std::string& version) {
  const mjp::PolicyOptions& p = policy.options();
  const bool cuda = p.backend == mjp::Backend::kCuda;
  const Conditions& c = options.conditions;
  Json conditions = {{"latency", c.Latency()},
                     {"picture_noise", c.picture_noise},
                     {"brightness", c.brightness},
                     {"picture_shift", c.picture_shift},
                     {"action_noise", c.action_noise}};
  Add(task.conditions(), conditions);
  Json run = {
      {"version", version},
      {"mujoco", mj_versionString()},
      {"checkpoint_sha256", policy.checkpoint().sha256},
      {kCheckpointFiles, policy.checkpoint().files},
      {kTaskKey, task.name()},
      {"episodes", options.episodes},
      {"seed", options.seed},
      {"shard", ToString(Shard{options.shard_index, options.shard_count})},
      {"max_steps", ResolveMaxSteps(options, task)},
      {"sampler",
       p.sampler.kind == mjp::SamplerKind::kAuto ? "none" : mjp::SamplerName(p.sampler.kind)},
      {"steps", p.sampler.steps},
      {"parallel_window", p.sampler.parallel_window},
      {"parallel_tolerance", p.sampler.parallel_tolerance},
      {"hold_noise", p.sampler.hold_noise},
      {"action_steps", ResolveActionSteps(options, policy.config())}};
  Add(task.settings(), run);
  run["conditions"] = conditions;
  // results on the GPU depend on its model and the configured batch, on the CPU on little
  run["backend"] = cuda ? policy.Description() : "CPU (fp32)";
  run["batch"] = cuda ? p.batch : 0;
  run["processor"] = cuda ? "" : mjp::ResultProcessor();
  if (p.sampler.prefix) run["prefix"] = true;
  if (p.sampler.warm_start > 0) run["warm_start"] = p.sampler.warm_start;
  if (p.sampler.temperature && *p.sampler.temperature != 1)
    run["temperature"] = ShortestDouble(*p.sampler.temperature);
  const mjp::EventReplanning::Rule rule = RuleOf(options, policy.config());
  if (rule.beyond > 0) run["replan_beyond"] = rule.beyond;
  if (options.replan_after > 0) run["replan_after"] = options.replan_after;
  if (!p.instruction.empty()) run["instruction"] = p.instruction;
  const std::string unlike = UnlikeTraining(task, policy);
  if (!unlike.empty()) run[kUnlikeTraining] = unlike;
  return JsonText(run, 1) + "\n";
}

}  // namespace mjp::app

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "apps/certify/measures.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "plugin/state.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/network_model.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/mjcf/mjcf_task.h"
#include "tasks/pusht/evaluation/pusht_task.h"
#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

// The model's task; null where it is none, or one that is code of this project.
std::shared_ptr<const TaskFile> FileOf(const std::string& model) {
  if (model.empty()) return nullptr;
  const ModelPtr outline = CompileWithoutPolicy(model);
  return SaysWholeTask(outline.get()) ? std::make_shared<TaskFile>(model) : nullptr;
}

EvaluationOptions EvaluationOf(const CertifyOptions& options) {
  EvaluationOptions evaluation;
  evaluation.checkpoint = options.checkpoint;
  evaluation.episodes = options.episodes;
  evaluation.seed = options.seed;
  evaluation.policy = options.policy;
  evaluation.policy.batch = options.batch;
  evaluation.hold_noise_given = options.hold_noise_given;
  return evaluation;
}

// Runs them all; throws Error as Evaluate does.
std::vector<EpisodeResult> Run(const Task& task, EvaluationOptions evaluation,
                               const SharedCheckpoint& checkpoint) {
  evaluation.policy.scene_drawer = task.scene_drawer();
  evaluation.policy.sampler.hold_noise = mjp::ResolveHoldNoise(
      evaluation.policy.sampler, *checkpoint, ResolveActionSteps(evaluation, checkpoint->config));
  return Evaluate(
             task, evaluation, mjp::Policy::Create(checkpoint, evaluation.policy),
             ShardIndices(evaluation), [](const EpisodeResult&) {}, std::atomic<bool>(false))
      .episodes;
}

}  // namespace

bool HoldsActions(mjp::SamplerKind kind) {
  return kind == mjp::SamplerKind::kDdpm || kind == mjp::SamplerKind::kDdim;
}

HeldActions HeldActionsOf(const std::string& model) {
  HeldActions held;
  if (model.empty()) return held;
  const ModelPtr outline = CompileWithoutPolicy(model);
  if (SaysWholeTask(outline.get())) return held;
  for (const int instance : mjp::PolicyInstances(outline.get())) {
    // what is no number is refused by the plugin
    const auto number = [&](const char* name) {
      const char* text = mj_getPluginConfig(outline.get(), instance, name);
      return DecimalNumber<int>(text ? text : "").value_or(0);
    };
    held.prefix = held.prefix || number("prefix") == 1;
    held.warm_start = std::max(held.warm_start, number("warm_start"));
  }
  return held;
}

void TakeTask(const mjp::Checkpoint& checkpoint, CertifyOptions& options) {
  const auto file = FileOf(options.model);
  if (!file) {
    const mjp::SamplerTraits traits = checkpoint.network->sampler();
    mjp::SamplerOptions& sampler = options.policy.sampler;
    const bool has_sampler = !traits.kinds.empty();
    if (!has_sampler ||
        !HoldsActions(sampler.kind == mjp::SamplerKind::kAuto ? traits.kind : sampler.kind))
      return;
    const HeldActions held = HeldActionsOf(options.model);
    if (held.prefix && sampler.parallel_window == mjp::kAutoWindow) sampler.parallel_window = 0;
    const int steps = sampler.steps > 0 ? sampler.steps : traits.steps;
    if (held.Allows(steps)) return;
    const std::string most = std::to_string(held.warm_start);
    throw mjp::Error(mjp::ExitCode::kUsage, options.model + ": the model's warm_start of " + most +
                                                " needs --steps above " + most + ", not " +
                                                std::to_string(steps) +
                                                ": give more, or lower it in the model");
  }
  EvaluationOptions evaluation = EvaluationOf(options);
  TakeAttributes(file->policy().config, evaluation);
  const int batch = options.policy.batch;
  options.policy = evaluation.policy;
  options.policy.batch = batch;
  options.batch = 1;  // in the plugin
}

Json EpisodesOf(const SharedCheckpoint& checkpoint, const CertifyOptions& options) {
  EvaluationOptions evaluation = EvaluationOf(options);
  std::unique_ptr<Task> task;
  if (const auto file = FileOf(options.model)) {
    evaluation.through = Through::kPlugin;
    TakeAttributes(file->policy().config, evaluation);
    task = std::make_unique<MjcfTask>(file);
  } else {
    task = std::make_unique<PushtTask>();
  }
  std::vector<EpisodeResult> episodes;
  try {
    episodes = Run(*task, evaluation, checkpoint);
  } catch (const mjp::Error& error) {
    if (error.code() != mjp::ExitCode::kBadInput) throw;
    return {{"absent", error.what()}};  // a policy of another robot
  }
  int successes = 0;
  Json list = Json::array();
  for (const EpisodeResult& episode : episodes) {
    successes += episode.success();
    list.push_back({{"seed", episode.seed},
                    {"hash", HexOf(episode.hash)},
                    {"score", episode.max_reward},
                    {"success", episode.success()}});
  }
  const Interval interval = Wilson95(successes, static_cast<int>(episodes.size()));
  return {{"task", task->name()},
          {"success", static_cast<double>(successes) / static_cast<double>(episodes.size())},
          {"interval_95", {interval.low, interval.high}},
          {"each", list}};
}

}  // namespace mjp::app

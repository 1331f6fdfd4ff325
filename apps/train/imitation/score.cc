#include "apps/train/imitation/score.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/error.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/network_model.h"
#include "policy/timing.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/mjcf/check/terms.h"
#include "tasks/mjcf/mjcf_task.h"
#include "tasks/mjcf/pictures/requested_pictures.h"

namespace mjp::app {
namespace {

constexpr uint32_t kFirstSeed = 200000;  // neither those of recordings nor of mjpolicy evaluate
constexpr int kSteps = 10;
constexpr int kMostBatch = 64;

}  // namespace

Scorer::Scorer(const ScoreOptions& options)
    : options_(options), file_(std::make_shared<TaskFile>(options.task)) {
  if (file_->code().empty()) return;
  throw BadInput(options.task + ": --task takes a file that says by elements how it is judged");
}

void Scorer::CheckFits(const PolicyConfig& config, const PictureLooks& trained) const {
  for (const std::string& misfit : Misfits(*file_, config)) {
    throw BadInput(options_.task + ": " + misfit + ": it is not the task of this data set");
  }
  const std::string unlike = UnlikeTraining(config.cameras, trained, LooksOf(*file_, config));
  if (!unlike.empty())
    std::fprintf(stderr, "%s: the policy %s\n", options_.task.c_str(), unlike.c_str());
}

Score Scorer::Play(const std::string& checkpoint, const std::atomic<bool>& stop) const {
  const double begin = Now();
  const MjcfTask task(file_);
  EvaluationOptions options;
  options.checkpoint = checkpoint;
  options.episodes = options_.episodes;
  options.seed = kFirstSeed;
  options.policy.threads = options_.threads;
  options.policy.batch = std::min(kMostBatch, options.episodes);
  if (options_.on_cpu) options.policy.backend = Backend::kCpu;
  const auto loaded = LoadCheckpoint(checkpoint);
  const std::vector<SamplerKind>& kinds = loaded->network->sampler().kinds;
  if (std::ranges::count(kinds, SamplerKind::kDdim) > 0) {
    options.policy.sampler.kind = SamplerKind::kDdim;
    options.policy.sampler.steps = kSteps;
  }
  TakeAttributes(file_->policy().config, options);
  options.policy.sampler.hold_noise = ResolveHoldNoise(options.policy.sampler, *loaded,
                                                       ResolveActionSteps(options, loaded->config));
  const EvaluationResult result = Evaluate(
      task, options, Policy::Create(loaded, options.policy), ShardIndices(options),
      [](const EpisodeResult&) {}, stop);
  Score score;
  score.episodes = static_cast<int>(result.episodes.size());
  for (const EpisodeResult& episode : result.episodes) {
    score.success += episode.success() ? 1.0 / score.episodes : 0.0;
    score.reward += episode.max_reward / score.episodes;
  }
  score.seconds = Now() - begin;
  return score;
}

}  // namespace mjp::app

#include "tasks/evaluation/plugin_evaluation.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "tasks/evaluation/disturbances.h"

namespace mjp::app {
namespace {

// One thread's simulation.
class PluginWorker {
 public:
  PluginWorker(const Task& task, const EvaluationOptions& options, const mjp::PolicyConfig& config)
      : task_(task), options_(options), simulation_(task.MakeHosted(options, config)) {}

  EpisodeResult Run(int index, std::string& video_file) {
    const double begin = mjp::Now();
    EpisodeResult result = NewEpisode(task_, index, options_.seed + static_cast<uint32_t>(index));
    StateHash hash;
    simulation_->Start(0, result.seed);
    std::unique_ptr<EpisodeVideo> video;
    if (index < options_.videos) {
      video = simulation_->MakeVideo(0, options_.video_folder, result);
      video->Add(result);
    }
    const int max_steps = ResolveMaxSteps(options_, task_);
    bool running = true;
    while (running) {
      simulation_->Step();
      simulation_->Judge(0, outcome_);
      running = AccountStep(outcome_, simulation_->State(0), max_steps, result, hash);
      if (video) video->Add(result);
    }
    result.decisions = simulation_->Decisions();
    result.hash = hash.value();
    result.seconds = mjp::Now() - begin;
    if (video) video_file = video->Close();
    return result;
  }

 private:
  const Task& task_;
  const EvaluationOptions& options_;
  std::unique_ptr<HostedSimulation> simulation_;
  StepOutcome outcome_;
};

class PluginEvaluation : public Evaluation {
 public:
  PluginEvaluation(const Task& task, const EvaluationOptions& options,
                   std::unique_ptr<mjp::Policy> policy)
      : task_(task),
        options_(options),
        config_(policy->config()),
        description_(policy->Description()) {
    if (DisturbsPictures(options.conditions) || options.conditions.action_noise != 0) {
      throw mjp::Error(mjp::ExitCode::kUsage,
                       "--through plugin runs the scene as it is: disturbed pictures and actions "
                       "need --through batch");
    }
    task.CheckHosted();
    options_.policy.sampler = policy->options().sampler;
    policy.reset();
    first_ = MakeWorker();
  }

  EvaluationResult Run(const std::vector<int>& pending, const EpisodeCallback& on_episode,
                       const std::atomic<bool>& stop) override {
    EvaluationResult result;
    result.backend = description_;
    const double begin = mjp::Now();
    std::mutex mutex;
    std::atomic<size_t> next{0};
    const int threads = std::min<int>(options_.policy.threads, pending.size());
    RunOnThreads(threads, [&](const std::atomic<bool>& failed) {
      std::unique_ptr<PluginWorker> worker;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        worker = std::move(first_);
      }
      if (!worker) worker = MakeWorker();
      for (size_t i = next++; i < pending.size() && !stop && !failed; i = next++) {
        std::string video;
        const EpisodeResult episode = worker->Run(pending[i], video);
        const std::lock_guard<std::mutex> lock(mutex);
        if (!video.empty()) result.videos.push_back(video);
        on_episode(episode);
        result.episodes.push_back(episode);
      }
    });
    result.interrupted = stop;
    result.seconds = mjp::Now() - begin;
    std::sort(result.episodes.begin(), result.episodes.end(),
              [](const auto& a, const auto& b) { return a.index < b.index; });
    std::sort(result.videos.begin(), result.videos.end());
    return result;
  }

 private:
  std::unique_ptr<PluginWorker> MakeWorker() const {
    return std::make_unique<PluginWorker>(task_, options_, config_);
  }

  const Task& task_;
  EvaluationOptions options_;  // as the policy resolved them
  const mjp::PolicyConfig config_;
  const std::string description_;
  std::unique_ptr<PluginWorker> first_;  // shows that the plugin takes the options
};

}  // namespace

std::unique_ptr<Evaluation> MakePluginEvaluation(const Task& task, const EvaluationOptions& options,
                                                 std::unique_ptr<mjp::Policy> policy) {
  return std::make_unique<PluginEvaluation>(task, options, std::move(policy));
}

}  // namespace mjp::app

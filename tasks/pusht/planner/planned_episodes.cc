#include "tasks/pusht/planner/planned_episodes.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "base/threads.h"
#include "tasks/evaluation/disturbances.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/pusht/environments.h"
#include "tasks/pusht/evaluation/judge.h"
#include "tasks/pusht/evaluation/pusht_task.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/physics/scene.h"

namespace mjp::app {
namespace {

// One episode at a time on a simulation of its own.
class Player {
 public:
  Player(const PlannedEpisodesOptions& options, const mjModel* model)
      : options_(options),
        task_(options.pusht),
        environment_(MakeEnvironments(options.pusht.physics, model, 1, 1)),
        planner_(options.planner) {}

  EpisodeResult Play(int index) {
    EpisodeResult episode = NewEpisode(task_, index, options_.seed + static_cast<uint32_t>(index));
    environment_->Start(0, BenchmarkStart(episode.seed));
    previous_ = state_ = environment_->Read(0);
    target_ = {state_.agent_x, state_.agent_y};
    Plan plan;
    for (bool running = true; running;) {
      const MovingState now = WithVelocity(previous_, state_, target_.x, target_.y);
      const Plan rest = Advance(plan, options_.action_steps);
      const bool warm = episode.decisions > 0;
      plan = planner_.Solve(now, warm ? &rest : nullptr,
                            {episode.seed, static_cast<uint64_t>(episode.decisions++)});
      for (int k = 0; k < options_.action_steps && running; ++k) {
        running = Step(plan.Target(k), episode);
      }
    }
    return episode;
  }

 private:
  // Returns whether the episode goes on.
  bool Step(const Point& planned, EpisodeResult& episode) {
    const PushtOptions& pusht = options_.pusht;
    const auto [dx, dy] = PushAt(pusht.push, pusht.pushes, episode.seed, episode.steps);
    if (dx != 0 || dy != 0) environment_->Push(0, dx, dy);
    target_ = {std::clamp<double>(planned.x, 0, kWorldSize),
               std::clamp<double>(planned.y, 0, kWorldSize)};
    const int id = 0;
    environment_->Step({&id, 1}, {&target_, 1});
    previous_ = state_;
    state_ = environment_->Read(0);
    StepOutcome outcome;
    JudgeStep(pusht, state_, environment_->Failure(0), outcome);
    StateHash hash;
    return AccountStep(outcome, ToNumbers(state_), task_.max_steps(), episode, hash);
  }

  const PlannedEpisodesOptions& options_;
  const PushtTask task_;
  std::unique_ptr<Environments> environment_;
  Planner planner_;
  State previous_, state_;
  Target target_ = {};
};

}  // namespace

Figures PlayPlanned(const PlannedEpisodesOptions& options, const std::atomic<bool>& stop) {
  const ModelPtr model = LoadModel(ModelPath("pusht_physics.xml"));
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int threads = std::min(options.threads > 0 ? options.threads : cores, options.episodes);
  std::mutex mutex;
  std::map<int, EpisodeResult> episodes;
  std::atomic<int> next = 0;
  RunOnThreads(threads, [&](const std::atomic<bool>& failed) {
    Player player(options, model.get());
    for (int i; !stop && !failed && (i = next++) < options.episodes;) {
      const EpisodeResult episode = player.Play(i);
      const std::lock_guard lock(mutex);
      episodes[i] = episode;
    }
  });
  return Summarise(episodes, PushtTask().measures());
}

}  // namespace mjp::app

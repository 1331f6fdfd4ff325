#include "tasks/pusht/evaluation/batch.h"

#include <algorithm>

#include "policy/timing.h"
#include "tasks/evaluation/disturbances.h"
#include "tasks/pusht/episode_video.h"
#include "tasks/pusht/physics/reset.h"

namespace mjp::app {

PushtBatch::PushtBatch(const PushtOptions& options, const EvaluationOptions& evaluation,
                       const mjp::PolicyConfig& config, int count)
    : options_(options),
      model_(LoadModel(ModelPath("pusht.xml"))),
      scene_(model_.get()),
      seen_(SeenThrough(options.renderer, evaluation.conditions, config)),
      observer_(options.renderer, evaluation.conditions, config, scene_, evaluation.policy.threads),
      environments_(
          MakeEnvironments(options.physics, model_.get(), count, evaluation.policy.threads)),
      observed_(config.n_obs_steps),
      robots_(count) {}

Snapshot PushtBatch::Take(int i) const {
  Snapshot snapshot{environments_->Read(i), std::vector<mjtNum>(model_->nq)};
  environments_->ReadQpos(i, snapshot.qpos.data());
  return snapshot;
}

void PushtBatch::Start(int i, uint32_t seed) {
  environments_->Start(i, BenchmarkStart(seed));
  robots_[i].history.assign(observed_, Take(i));
  robots_[i].numbers = ToNumbers(robots_[i].history.back().state);
  robots_[i].previous = robots_[i].numbers;
}

std::vector<double> PushtBatch::HeldAction(int i) const {
  const mjp::app::State& state = robots_[i].history.back().state;
  return {state.agent_x, state.agent_y};
}

void PushtBatch::Disturb(int i, uint32_t seed, int tick) {
  const auto [dx, dy] = PushAt(options_.push, options_.pushes, seed, tick);
  if (dx != 0 || dy != 0) environments_->Push(i, dx, dy);
}

void PushtBatch::Step(std::span<const int> ids, std::span<const double> actions) {
  const double begin = mjp::Now();
  targets_.clear();
  for (size_t k = 0; k < ids.size(); ++k) targets_.push_back({actions[2 * k], actions[2 * k + 1]});
  environments_->Step(ids, targets_);
  for (const int i : ids) {
    Robot& robot = robots_[i];
    std::rotate(robot.history.begin(), robot.history.begin() + 1, robot.history.end());
    robot.history.back() = Take(i);
    robot.previous = robot.numbers;
    robot.numbers = ToNumbers(robot.history.back().state);
  }
  seconds_.physics += mjp::Now() - begin;
}

void PushtBatch::Judge(int i, StepOutcome& outcome) const {
  JudgeStep(options_, robots_[i].history.back().state, environments_->Failure(i), outcome);
}

std::unique_ptr<EpisodeVideo> PushtBatch::MakeVideo(int i, const std::string& folder,
                                                    const EpisodeResult& episode) {
  return std::make_unique<PushtVideo>(folder, episode, seen_,
                                      [this, i] { return robots_[i].history.back().state; });
}

void PushtBatch::AddInput(int i, uint32_t seed, int tick, uint32_t decision) {
  const double begin = mjp::Now();
  observer_.Add(robots_[i].history, seed, tick, decision);
  seconds_.pictures += mjp::Now() - begin;
}

mjp::PolicyInput PushtBatch::Input() {
  const double begin = mjp::Now();
  const mjp::PolicyInput input = observer_.Input();
  seconds_.pictures += mjp::Now() - begin;
  return input;
}

}  // namespace mjp::app

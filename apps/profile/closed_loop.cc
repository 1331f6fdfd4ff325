#include "apps/profile/closed_loop.h"

#include <algorithm>
#include <numeric>

#include "tasks/pusht/environments.h"
#include "tasks/pusht/observation.h"
#include "tasks/pusht/physics/reset.h"

namespace mjp::app {
namespace {

class ClosedLoop {
 public:
  ClosedLoop(const EvaluationOptions& options, RendererKind renderer, mjp::Policy& policy,
             Timeline& timeline)
      : policy_(policy),
        timeline_(timeline),
        model_(LoadModel(ModelPath("pusht.xml"))),
        scene_(model_.get()),
        observer_(renderer, options.conditions, policy.config(), scene_),
        robots_(MakeEnvironments(PhysicsKind::kMujoco, model_.get(), options.policy.batch,
                                 options.policy.threads)),
        action_steps_(ResolveActionSteps(options, policy.config())),
        ids_(options.policy.batch),
        targets_(ids_.size()),
        histories_(ids_.size()) {
    std::iota(ids_.begin(), ids_.end(), 0);
    for (const int i : ids_) {
      robots_->Start(i, BenchmarkStart(options.seed + i));
      histories_[i].assign(policy.config().n_obs_steps, Observe(i));
    }
  }

  // One decision and the control steps that execute it.
  void Decide(uint32_t decision, bool record) {
    recording_ = record;
    Span(mjp::StageName(mjp::Stage::kScene), [&] {
      observer_.Clear();
      for (const int i : ids_)
        observer_.Add(histories_[i], static_cast<uint32_t>(i), tick_, decision);
    });
    Span("decision", [&] { policy_.Infer(observer_.Input(), output_); });
    if (record) AddPolicyTimes();
    for (int step = 0; step < action_steps_; ++step) Execute(step);
  }

 private:
  template <class Work>
  void Span(const char* name, Work&& work) {
    const double begin = mjp::Now();
    work();
    if (recording_) timeline_.Add(Track::kControl, name, begin, mjp::Now());
  }

  Snapshot Observe(int i) const {
    Snapshot snapshot{robots_->Read(i), std::vector<mjtNum>(model_->nq)};
    robots_->ReadQpos(i, snapshot.qpos.data());
    return snapshot;
  }

  void Execute(int step) {
    const mjp::PolicyConfig& config = policy_.config();
    Span(mjp::StageName(mjp::Stage::kApply), [&] {
      for (const int i : ids_) {
        const float* action =
            output_.actions.data() +
            (size_t{1} * i * config.horizon + config.n_obs_steps - 1 + step) * config.action_dim;
        targets_[i] = {action[0], action[1]};
      }
    });
    Span(mjp::StageName(mjp::Stage::kPhysics), [&] { robots_->Step(ids_, targets_); });
    ++tick_;
    for (const int i : ids_) {
      histories_[i].erase(histories_[i].begin());
      histories_[i].push_back(Observe(i));
    }
  }

  void AddPolicyTimes() {
    for (size_t i = 0; i < mjp::kStageCount; ++i) {
      const auto& span = output_.times.spans[i];
      if (span.end > span.begin)
        timeline_.Add(Track::kStages, mjp::StageName(static_cast<mjp::Stage>(i)), span.begin,
                      span.end);
    }
    for (const auto& step : output_.times.steps)
      timeline_.Add(Track::kSteps, "pass and step", step.begin, step.end);
  }

  mjp::Policy& policy_;
  Timeline& timeline_;
  ModelPtr model_;
  Scene scene_;
  Observer observer_;
  std::unique_ptr<Environments> robots_;
  int action_steps_;
  std::vector<int> ids_;
  std::vector<Target> targets_;
  std::vector<std::vector<Snapshot>> histories_;
  mjp::PolicyOutput output_;
  int tick_ = 0;
  bool recording_ = false;
};

}  // namespace

int ProfileClosedLoop(const EvaluationOptions& options, RendererKind renderer, mjp::Policy& policy,
                      int decisions, const std::atomic<bool>& stop, Timeline& timeline) {
  ClosedLoop loop(options, renderer, policy, timeline);
  int done = 0;  // the first one among them
  for (; done <= decisions && !stop; ++done) loop.Decide(static_cast<uint32_t>(done), done > 0);
  return std::max(0, done - 1);
}

}  // namespace mjp::app

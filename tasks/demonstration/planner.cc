#include "tasks/demonstration/planner.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "plugin/state.h"
#include "tasks/demonstration/action_ranges.h"
#include "tasks/evaluation/hosted_failure.h"
#include "tasks/physics/random_stream.h"

namespace mjp::app {
namespace {

constexpr uint64_t kStream = 32;  // beside those of starts and of stand_ins.cc

class SamplingPlanner : public Demonstrator {
 public:
  SamplingPlanner(const TaskFile& file, const SamplingOptions& options)
      : file_(file),
        samples_(options.samples),
        steps_(std::max(2, static_cast<int>(std::ceil(options.horizon / file.period() - 1e-9)))),
        ranges_(ActionRanges(file)),
        model_(CopyOfModel(file.model())),
        data_(MakeData(model_.get())),
        state_(static_cast<size_t>(mj_stateSize(model_.get(), kStateWithoutPlugins))) {}

  void Begin(uint32_t seed, const mjModel* model, const mjData* data) override {
    if (file_.start().changes_model()) Start::CopyDrawn(model, model_.get());
    seed_ = seed;
    decision_ = 0;
    std::vector<mjtNum> held(ranges_.size());
    ActionOf(file_.policy().controls, data, held);
    Clamp(held.data());
    plan_.clear();
    for (int step = 0; step < steps_; ++step) plan_.insert(plan_.end(), held.begin(), held.end());
  }

  void Act(const mjModel* model, const mjData* data, std::span<mjtNum> action) override {
    mj_getState(model, data, state_.data(), kStateWithoutPlugins);
    RandomStream random(seed_, kStream, decision_++);
    std::vector<mjtNum> best = plan_;
    double highest = Reward(plan_);
    for (int i = 1; i < samples_; ++i) {
      std::vector<mjtNum> candidate = Change(i, random);
      const double reward = Reward(candidate);
      if (reward <= highest) continue;
      highest = reward;
      best = std::move(candidate);
    }
    std::copy_n(best.begin(), ranges_.size(), action.begin());
    // what is left of it, and its last action once more
    plan_.assign(best.begin() + static_cast<ptrdiff_t>(ranges_.size()), best.end());
    plan_.insert(plan_.end(), best.end() - static_cast<ptrdiff_t>(ranges_.size()), best.end());
  }

 private:
  static constexpr int kKnots = 6;  // within the horizon, between which changes are linear

  void Clamp(mjtNum* action) const {
    for (size_t i = 0; i < ranges_.size(); ++i) {
      action[i] = std::clamp(action[i], ranges_[i].low, ranges_[i].high);
    }
  }

  // The plan with noise on its knots: small, large, or new altogether.
  std::vector<mjtNum> Change(int candidate, RandomStream& random) const {
    static constexpr double kDeviations[] = {0.03, 0.1, 0.3};  // of the range
    const size_t width = ranges_.size();
    const bool fresh = candidate % 4 == 3;
    std::vector<mjtNum> knots(kKnots * width);
    for (size_t k = 0; k < knots.size(); ++k) {
      const ActionRange& range = ranges_[k % width];
      const double size = range.high - range.low;
      knots[k] = fresh ? range.low + size * random.Uniform()
                       : size * kDeviations[candidate % 4] * random.Normal();
    }
    std::vector<mjtNum> changed(plan_.size());
    for (int step = 0; step < steps_; ++step) {
      const double at = static_cast<double>(step) * (kKnots - 1) / (steps_ - 1);
      const int knot = std::min(kKnots - 2, static_cast<int>(at));
      const double after = at - knot;
      for (size_t i = 0; i < width; ++i) {
        const mjtNum* before = &knots[knot * width + i];
        const double value = before[0] + after * (before[width] - before[0]);
        const size_t here = step * width + i;
        changed[here] = fresh ? value : plan_[here] + value;
      }
      Clamp(&changed[step * width]);
    }
    return changed;
  }

  // The sum of rewards of `plan` from state_ on. A success counts for all that is left, a failure
  // as much below nothing.
  double Reward(const std::vector<mjtNum>& plan) {
    mj_setState(model_.get(), data_.get(), state_.data(), kStateWithoutPlugins);
    for (int kind = 0; kind < mjNWARNING; ++kind) data_->warning[kind].number = 0;
    double sum = 0;
    int held = 0;
    StepOutcome outcome;
    for (int step = 0; step < steps_; ++step) {
      const std::span<const mjtNum> action(&plan[step * ranges_.size()], ranges_.size());
      file_.policy().controls.Write(action, data_.get());
      for (int i = 0; i < file_.substeps(); ++i) mj_step(model_.get(), data_.get());
      if (!PhysicsFailure(data_.get()).empty()) return sum - (steps_ - step);
      Sense();
      file_.rules().Judge(data_->sensordata, held, outcome);
      if (outcome.lost) return sum - (steps_ - step);
      sum += outcome.success ? 1 : outcome.reward;
    }
    return sum;
  }

  void Sense() {
    if (file_.rules().stage() == mjSTAGE_ACC) {
      mj_forward(model_.get(), data_.get());
    } else {
      mj_step1(model_.get(), data_.get());
    }
  }

  const TaskFile& file_;
  int samples_, steps_;  // of a plan
  std::vector<ActionRange> ranges_;
  ModelPtr model_;
  DataPtr data_;
  std::vector<mjtNum> state_;
  std::vector<mjtNum> plan_;  // (steps, numbers of an action)
  uint32_t seed_ = 0;
  uint64_t decision_ = 0;
};

}  // namespace

std::unique_ptr<Demonstrator> MakeSamplingPlanner(const TaskFile& file,
                                                  const SamplingOptions& options) {
  if (!file.code().empty()) {
    throw BadInput(file.path() + " is judged by code, which the planner for task files does not " +
                   "know: record it by its expert");
  }
  return std::make_unique<SamplingPlanner>(file, options);
}

}  // namespace mjp::app

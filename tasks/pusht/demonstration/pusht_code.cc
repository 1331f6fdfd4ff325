#include "tasks/pusht/demonstration/pusht_code.h"

#include <algorithm>

#include "tasks/pusht/evaluation/judge.h"
#include "tasks/pusht/options.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/physics/table.h"
#include "tasks/pusht/planner/planner.h"
#include "tasks/task_names.h"

namespace mjp::app {
namespace {

// What is judged here, and planned for, is the benchmark's goal.
Scene BenchmarkScene(const mjModel* model) {
  Scene scene(model);
  CheckBenchmarkGoal(model);
  return scene;
}

class PushtRules : public TaskCode {
 public:
  explicit PushtRules(const mjModel* model) : scene_(BenchmarkScene(model)) {}

  std::vector<std::string> measures() const override { return {"coverage"}; }
  void Start(uint32_t seed, mjData* data) const override {
    scene_.SetStart(BenchmarkStart(seed), data);
  }
  void Judge(const mjData* data, StepOutcome& outcome) const override {
    JudgeStep({}, scene_.Read(data), "", outcome);
  }

 private:
  Scene scene_;
};

// Plans anew every few control steps from where the simulation is.
class PushtExpert : public Demonstrator {
 public:
  explicit PushtExpert(const TaskFile& file)
      : controls_(file.policy().controls), scene_(BenchmarkScene(file.model())), planner_({}) {}

  void Begin(uint32_t seed, const mjModel*, const mjData*) override {
    key_ = {seed, 0};
    passed_ = kExecuted;
  }

  void Act(const mjModel* model, const mjData* data, std::span<mjtNum> action) override {
    if (passed_ == kExecuted) {
      const Plan rest = key_.decision > 0 ? Advance(plan_, passed_) : Plan{};
      plan_ = planner_.Solve(Moving(model, data), key_.decision > 0 ? &rest : nullptr, key_);
      ++key_.decision;
      passed_ = 0;
    }
    const Point target = plan_.Target(passed_++);
    const double pixels[] = {std::clamp(target.x, 0.0f, 512.0f),
                             std::clamp(target.y, 0.0f, 512.0f)};
    // the file says which number is which control, and its unit
    for (int i = 0; i < controls_.size(); ++i) {
      const bool is_y = controls_.quantities()[i].name == "ay";
      action[controls_.indices()[i]] = controls_.ToAction(i, pixels[is_y] / kPixelsPerUnit);
    }
  }

 private:
  static constexpr int kExecuted = 4;  // control steps of each plan

  // The velocity is the engine's, whatever actions led here.
  MovingState Moving(const mjModel* model, const mjData* data) const {
    const auto velocity = [&](const char* name) {
      const int joint = mj_name2id(model, mjOBJ_JOINT, name);
      return kPixelsPerUnit * data->qvel[model->jnt_dofadr[joint]];
    };
    return {scene_.Read(data), velocity("ax"), velocity("ay")};
  }

  const ControlBinding& controls_;
  Scene scene_;
  Planner planner_;
  PlanKey key_;
  mjp::app::Plan plan_;
  int passed_ = kExecuted;  // control steps of the plan
};

}  // namespace

TaskCodeEntry PushtCode() {
  return {true, kPusht,
          [](const TaskFile& file) { return std::make_unique<PushtRules>(file.model()); },
          [](const TaskFile& file) { return std::make_unique<PushtExpert>(file); }};
}

}  // namespace mjp::app

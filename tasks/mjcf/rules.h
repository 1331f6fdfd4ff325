#ifndef TASKS_MJCF_RULES_H_
#define TASKS_MJCF_RULES_H_

#include <mujoco/mujoco.h>

#include <optional>
#include <string>
#include <vector>

#include "tasks/evaluation/task.h"
#include "tasks/mjcf/condition.h"

namespace mjp::app {

// How an episode of a task file is judged, and how long it lasts (docs/tasks.md, The judge).
class Rules {
 public:
  // Reads the elements `task.*` of `model`, whose control step takes `period` seconds. Throws Error
  // naming element, entry and word.
  Rules(const mjModel* model, double period);

  std::vector<std::string> measures() const;
  int steps() const { return steps_; }  // control steps of an episode
  // The last stage of the engine that sensors are needed of.
  mjtStage stage() const { return stage_; }

  // Judges a control step by `sensors`, which are up to date. `held`: control steps in a row before
  // this one at whose end the condition of success held; is brought up to date.
  void Judge(const mjtNum* sensors, int& held, StepOutcome& outcome) const;
  // The value of the last stage of `task.score` that holds; 0: none, or there are no stages.
  double StageValue(const mjtNum* sensors) const;

 private:
  struct Measure {
    std::string name;
    std::optional<Condition> condition;  // none: the sensor, from low to high
    int address = 0;
    double low = 0, high = 1;
  };
  struct Stage {
    double value;
    Condition condition;
  };
  void ReadMeasures(const mjModel* model);
  void ReadScore(const mjModel* model);
  void ReadStages(const mjModel* model, const std::string& text);
  void ReadSuccess(const mjModel* model, double period);
  Condition Read(const mjModel* model, const std::string& text, const Place& place);
  double Share(const Measure& measure, const mjtNum* sensors, double score) const;

  int steps_ = 0, hold_ = 1;  // control steps
  bool run_on_ = false;
  mjtStage stage_ = mjSTAGE_POS;
  std::vector<Stage> stages_;
  double highest_ = 1;  // value of a stage
  std::vector<Measure> measures_;
  int reward_measure_ = -1;  // the measure that is the reward; negative: none
  std::optional<Condition> success_, failure_;
};

}  // namespace mjp::app

#endif  // TASKS_MJCF_RULES_H_

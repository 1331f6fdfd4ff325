#ifndef TASKS_MJCF_CONDITION_H_
#define TASKS_MJCF_CONDITION_H_

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

#include "tasks/mjcf/words.h"

namespace mjp::app {

// One number of a sensor.
struct SensorNumber {
  int address = 0;               // in sensordata
  mjtStage stage = mjSTAGE_POS;  // at which the engine computes it
};

// The number that "name" or "name[1]" means. Throws place.Refuse for a sensor that the model lacks,
// that has several numbers of which none is chosen, or that is no part of the world.
SensorNumber FindSensorNumber(const mjModel* model, const std::string& text, const Place& place);

// What named sensors must be (docs/tasks.md, Conditions): all of groups of which one must hold.
class Condition {
 public:
  // `knows_score`: the word "score" is the value of the last stage that holds.
  Condition(const mjModel* model, const std::string& text, bool knows_score, const Place& place);

  // `sensors` is sensordata, up to date.
  bool Holds(const mjtNum* sensors, double score) const;
  // The last stage of the engine that it needs.
  mjtStage stage() const { return stage_; }

 private:
  enum class Comparison { kAbove, kBelow, kAtLeast, kAtMost };
  struct Term {
    bool negated = false, is_score = false;
    int address = 0;
    Comparison comparison = Comparison::kAbove;
    double number = 0;
  };
  class Parser;
  static bool Holds(const Term& term, const mjtNum* sensors, double score);

  std::vector<std::vector<Term>> groups_;
  mjtStage stage_ = mjSTAGE_POS;
};

}  // namespace mjp::app

#endif  // TASKS_MJCF_CONDITION_H_

#include "tasks/pusht/coverage_score.h"

#include <string>

#include "base/error.h"
#include "plugin/score.h"
#include "tasks/pusht/coverage.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/physics/table.h"

namespace mjp::app {
namespace {

GoalPose GoalOf(const mjModel* model) {
  try {
    return FindGoal(model);
  } catch (const mjp::Error& error) {
    throw mjp::BadInput(
        "the score \"coverage\" would not be that of this model: " + std::string(error.what()) +
        "; take its sensor and the label out of the model, or see models/pusht.xml");
  }
}

}  // namespace

void RegisterCoverageScore() {
  mjp::RegisterScore("coverage", [](const mjModel* model) -> mjp::Score {
    try {
      return {[scene = Scene(model)](const mjModel* current, const mjData* data) {
                const GoalPose goal = GoalOf(current);
                return Coverage(scene.Read(data), goal.x, goal.y, goal.angle);
              },
              [](const mjModel* current) { GoalOf(current); }};
    } catch (const mjp::Error&) {
      return {};  // another scene
    }
  });
}

}  // namespace mjp::app

#include "tasks/pusht/coverage_score.h"

#include "base/error.h"
#include "plugin/score.h"
#include "tasks/pusht/coverage.h"
#include "tasks/pusht/physics/scene.h"

namespace mjp::app {

void RegisterCoverageScore() {
  mjp::RegisterScore("coverage", [](const mjModel* model) -> mjp::Score {
    try {
      return [scene = Scene(model)](const mjData* data) { return Coverage(scene.Read(data)); };
    } catch (const mjp::Error&) {
      return {};  // another scene
    }
  });
}

}  // namespace mjp::app

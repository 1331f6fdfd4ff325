#include "task/coverage_score.h"

#include "kernels/error.h"
#include "plugin/score.h"
#include "task/coverage.h"
#include "task/scene.h"

namespace pusht {

void RegisterCoverageScore() {
  dp::RegisterScore("coverage", [](const mjModel* model) -> dp::Score {
    try {
      return [scene = Scene(model)](const mjData* data) { return Coverage(scene.Read(data)); };
    } catch (const dp::Error&) {
      return {};  // another scene
    }
  });
}

}  // namespace pusht

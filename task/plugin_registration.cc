#include "task/coverage_score.h"
#include "task/raster_source.h"

// Linked as an object into the plugin's library, whose host calls nothing of this project.

namespace {

[[maybe_unused]] const bool registered = [] {
  pusht::RegisterRasterSource();
  pusht::RegisterCoverageScore();
  return true;
}();

}  // namespace

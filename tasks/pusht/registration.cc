#include "tasks/pusht/coverage_score.h"
#include "tasks/pusht/pictures/raster_source.h"

// Linked as an object into every program and library that has the tasks: nothing calls it.

namespace {

[[maybe_unused]] const bool registered = [] {
  mjp::app::RegisterRasterSource();
  mjp::app::RegisterCoverageScore();
  return true;
}();

}  // namespace

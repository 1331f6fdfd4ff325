#include "tasks/pusht/coverage_score.h"
#include "tasks/pusht/pictures/raster_source.h"

// Linked as an object into the plugin's library, whose host calls nothing of this project.

namespace {

[[maybe_unused]] const bool registered = [] {
  mjp::app::RegisterRasterSource();
  mjp::app::RegisterCoverageScore();
  return true;
}();

}  // namespace

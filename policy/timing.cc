#include "policy/timing.h"

#include <chrono>

namespace mjp {

const char* StageName(Stage stage) {
  constexpr const char* kNames[kStageCount] = {"scene",  "render", "hand-over", "prepare",
                                               "encode", "film",   "denoise",   "fetch",
                                               "apply",  "physics"};
  return kNames[static_cast<size_t>(stage)];
}

double Now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

}  // namespace mjp

#include <cstddef>
#include <cstdint>
#include <exception>

#include "base/error.h"
#include "tasks/results/episode.h"

// A line of episodes.jsonl is refused, or is an episode that survives being written and read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string line(reinterpret_cast<const char*>(data), size);
    const std::string first = mjp::app::ToJsonLine(mjp::app::EpisodeFromJson(line));
    if (mjp::app::ToJsonLine(mjp::app::EpisodeFromJson(first)) != first) std::terminate();
  } catch (const mjp::Error&) {
  }
  return 0;
}

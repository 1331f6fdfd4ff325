#include <cstddef>
#include <cstdint>
#include <exception>

#include "kernels/error.h"
#include "task/episode.h"

// A line of episodes.jsonl is refused, or is an episode that survives being written and read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string line(reinterpret_cast<const char*>(data), size);
    const std::string first = pusht::ToJsonLine(pusht::EpisodeFromJson(line));
    if (pusht::ToJsonLine(pusht::EpisodeFromJson(first)) != first) std::terminate();
  } catch (const dp::Error&) {
  }
  return 0;
}

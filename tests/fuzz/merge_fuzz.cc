#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "base/error.h"
#include "tasks/results/shard_results.h"

// The files of a shard, a NUL between them: refused, or episodes of this shard with their seeds.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\0');
  if (end == std::string::npos) return 0;
  for (const bool partial : {false, true}) {
    try {
      const mjp::app::ShardRun run = mjp::app::ParseShardRun(text.substr(0, end), "run.json");
      for (const mjp::app::EpisodeResult& e :
           mjp::app::ParseShardEpisodes(text.substr(end + 1), run, partial, "episodes.jsonl")) {
        if (e.index < 0 || e.index >= run.episodes || e.index % run.shard.count != run.shard.index)
          std::terminate();
      }
    } catch (const mjp::Error&) {
    }
  }
  return 0;
}

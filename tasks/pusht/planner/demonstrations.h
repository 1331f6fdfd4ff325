#ifndef TASKS_PUSHT_PLANNER_DEMONSTRATIONS_H_
#define TASKS_PUSHT_PLANNER_DEMONSTRATIONS_H_

#include <atomic>
#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tasks/pusht/planner/demonstration_stream.h"

// Demonstrations on the disk: a folder with
//   demonstrations.json  what was asked for; another run cannot be mixed in
//   rows-00000.npy ...   one stream each, float32 (rows, 42): DemonstrationRow
//   streams.jsonl        one durable line per finished stream: how its episodes went, and the
//   SHA-256
//                        of its rows (earlier builds: none, and rows are known by their size alone)
// The bytes depend on the options only, not on threads or interruptions.

namespace mjp::app {

struct DemonstrateOptions {
  std::string out;        // folder, made if absent
  int64_t rows = 300000;  // at least; rounded up to whole streams
  int threads = 0;        // 0: one per core
  StreamOptions stream;
};

// Makes the streams that `options.out` still lacks or holds damaged, on all threads, and prints
// progress and the planner's success to `log`. `stop`, once set, ends it early; the same call then
// goes on where it stopped. Returns true when complete. Throws Error where the folder holds other
// demonstrations or cannot be written.
bool RunDemonstrate(const DemonstrateOptions& options, std::ostream& log,
                    const std::atomic<bool>& stop);

// Adds a stream to a folder, which then has it whole or not at all. One writer at a time.
void AppendStream(const std::string& folder, int64_t index, const Stream& stream);

// The rows of one stream of a folder, if it is finished. Throws Error naming what is damaged.
std::optional<std::vector<DemonstrationRow>> LoadStream(const std::string& folder, int64_t index);

// All rows of a folder, in the order of the streams. Throws Error naming what is missing or
// damaged.
std::vector<DemonstrationRow> LoadDemonstrations(const std::string& folder);

// The rows of the streams that are finished and not in `seen`, where they are then noted; none
// where there is no folder yet. Throws Error naming what is missing or damaged.
std::vector<DemonstrationRow> LoadNewDemonstrations(const std::string& folder,
                                                    std::set<int64_t>& seen);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PLANNER_DEMONSTRATIONS_H_

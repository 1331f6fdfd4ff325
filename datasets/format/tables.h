#ifndef DATASETS_FORMAT_TABLES_H_
#define DATASETS_FORMAT_TABLES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "datasets/format/info.h"
#include "datasets/format/statistics.h"

// meta/tasks.parquet and meta/episodes/**: what a data set says of its tasks and episodes.

namespace mjp::datasets {

struct FileIndex {
  int64_t chunk = 0, file = 0;
  bool operator==(const FileIndex&) const = default;
};

// Where an episode's frames of one camera are.
struct VideoPart {
  FileIndex file;
  double from = 0, to = 0;  // seconds
};

struct Episode {
  int64_t index = 0, length = 0;
  int64_t from = 0, to = 0;  // its frames in the data set, half open
  FileIndex data;
  std::vector<std::string> tasks;
  std::map<std::string, VideoPart> videos;  // by feature
  Statistics statistics;                    // empty where the file has none
  std::string table;                        // the file of meta/episodes that lists it
};

// The episodes of all files below meta/episodes of the data set in `folder`, in their order.
// Throws Error naming file and row for what is missing, out of order or of another shape than
// `info` says. Their number is not held against info's.
std::vector<Episode> ReadEpisodes(const std::string& folder, const Info& info);

// The bytes of a meta/episodes file, its place in which is `place`. All episodes have statistics.
std::vector<uint8_t> EpisodesFile(const std::vector<Episode>& episodes, const Info& info,
                                  FileIndex place);

// Path of a meta/episodes file within the data set.
std::string EpisodesPath(FileIndex place);

struct Tasks {
  std::vector<std::string> texts;  // by task_index
  // LeRobot finds the texts by an entry "pandas"; without it, it silently takes row numbers.
  bool found_by_lerobot = false;
};
Tasks ReadTasks(const std::string& folder);
std::vector<uint8_t> TasksFile(const std::vector<std::string>& texts);

}  // namespace mjp::datasets

#endif  // DATASETS_FORMAT_TABLES_H_

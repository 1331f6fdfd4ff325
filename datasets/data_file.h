#ifndef DATASETS_DATA_FILE_H_
#define DATASETS_DATA_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/format/info.h"
#include "datasets/format/tables.h"
#include "datasets/parquet/writer.h"
#include "datasets/store.h"

// The files data/**: episodes behind each other, a row group each or several.

namespace mjp::datasets {

// The columns of a data file: a list of numbers per frame where a feature has more than one,
// pictures as PNG files, videos not at all.
parquet::Writer DataWriter(const Info& info);

// What an episode adds to a data file.
struct DataRows {
  const NewEpisode& episode;
  const Info& info;
  const Episode& placed;              // has its index and frames
  const std::vector<int64_t>& tasks;  // task_index of each frame
};

// Writes to `temporary` a data file that begins as the first writer.size() bytes of `old` (which
// is not read where these are the file's beginning alone), followed by an episode, durably.
// `writer` is then that of the new file. Throws Error.
void WriteDataFile(const std::string& old, const std::string& temporary, const DataRows& rows,
                   parquet::Writer& writer);

// Makes folders that are missing, durably.
void MakeFolders(const std::string& path);

// Statistics of all of an episode's features, those of its pictures among them. Throws Error naming
// feature and frame for what is missing or not finite.
Statistics EpisodeStatistics(const DataRows& rows);

}  // namespace mjp::datasets

#endif  // DATASETS_DATA_FILE_H_

#ifndef DATASETS_STORE_H_
#define DATASETS_STORE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "datasets/format/info.h"
#include "datasets/format/tables.h"
#include "datasets/parquet/writer.h"
#include "datasets/workplace.h"

namespace mjp::datasets {

class Dataset;
using CheckDataset = std::function<void(Dataset&)>;

// A whole episode, to be put into a data set.
struct NewEpisode {
  int64_t frames = 0;
  std::vector<std::string> tasks;  // the texts that occur
  std::vector<int64_t> task;       // of each frame, into `tasks`
  // By feature: numbers and texts, frames * elements, but for the five that each data set has.
  std::map<std::string, parquet::Values> values;
  // The PNG file of a frame; asked for frame by frame, each image in the features' order.
  std::function<std::vector<uint8_t>(const Feature& feature, int64_t frame)> png;
  // By feature of kind video: a finished MP4 file in the data set's folder, which is taken away.
  std::map<std::string, std::string> videos;
  Statistics picture_statistics;  // of images and videos
};

// A data set on disk to which episodes are added. Whatever is killed when: the episodes for which
// Add has returned are there, whole and readable by all, and the next Store on the folder removes
// what an unfinished one left. Files, in the order in which an episode's are replaced, each at
// once: videos, data, tasks, episodes, statistics, info. One process at a time.
class Store {
 public:
  // Creates a data set in `folder`, which must be absent or empty, or goes on with the one that is
  // there: then `wanted` must have the same features and rate. Throws Error that says what differs.
  // Of `wanted`, fps, features without the default five, robot_type, and what else was read count.
  // `check` may refuse a data set that is there by an Error of its own. What is refused is left as
  // it was.
  Store(std::string folder, const Info& wanted, const CheckDataset& check = {});

  const std::string& folder() const { return folder_; }
  const Info& info() const { return info_; }
  // A folder for files that are not yet part of the data set; it is the writer's.
  const std::string& workplace() const { return workplace_.folder(); }

  // Adds an episode; it is durable when this returns. Throws Error if something is missing, not
  // finite, or cannot be written: the data set is then as it was.
  void Add(const NewEpisode& episode);

 private:
  void Create(const Info& wanted);
  // What is there, without a change to it.
  void Read(const Dataset& dataset, const Info& wanted);
  // Makes room for the next episode: removes what an unfinished Store left.
  void Resume(const Dataset& dataset);
  void DropLeftovers(const Dataset& dataset) const;
  void DropRows(const Dataset& dataset) const;
  // The task_index of each frame; texts that are new are appended to `texts`.
  std::vector<int64_t> TaskIndices(const NewEpisode& episode,
                                   std::vector<std::string>& texts) const;
  void AddVideos(const NewEpisode& episode, Episode& placed);
  void Record(Episode placed, int64_t tasks);

  std::string folder_;
  Workplace workplace_;
  Info info_;
  std::vector<std::string> tasks_;
  Statistics statistics_;
  std::vector<Episode> recent_;  // those of the episodes file that is being filled
  FileIndex episodes_file_, data_file_;
  std::map<std::string, FileIndex> video_files_;  // the last of each camera
  std::optional<parquet::Writer> data_;           // of the data file that is being filled
};

}  // namespace mjp::datasets

#endif  // DATASETS_STORE_H_

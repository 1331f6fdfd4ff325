#ifndef DATASETS_DATASET_H_
#define DATASETS_DATASET_H_

#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/format/info.h"
#include "datasets/format/tables.h"
#include "datasets/parquet/reader.h"
#include "datasets/pictures/picture.h"
#include "datasets/video/video.h"

namespace mjp::datasets {

// How far a frame of a video may be from the time that is asked for, in seconds: LeRobot's.
inline constexpr double kTimeTolerance = 1e-4;

// A LeRobotDataset v3.0 on disk, read. It keeps a few files open and is for one thread; open it
// again for another. docs/datasets.md has the layout.
class Dataset {
 public:
  // Reads meta/ of a data set. Throws Error naming the file for what is missing or malformed, or
  // lists fewer episodes than info.json counts. Episodes beyond those, which a writer left that
  // was killed in between, are not read.
  explicit Dataset(std::string folder);

  const std::string& folder() const { return folder_; }
  const Info& info() const { return info_; }
  const Tasks& tasks() const { return tasks_; }
  const std::vector<Episode>& episodes() const { return episodes_; }
  // Those that info.json does not count.
  const std::vector<Episode>& leftovers() const { return leftovers_; }

  // What an episode has of a feature that is no video: the row of frame i is the column's row i,
  // with as many values as the feature has elements; of an image a PNG file. Throws Error naming
  // file and episode where it has another type or shape.
  parquet::Column Read(size_t episode, const Feature& feature) {
    return Read(episode, feature, 0, episodes_.at(episode).length);
  }
  // The same for `count` frames from `first` on.
  parquet::Column Read(size_t episode, const Feature& feature, int64_t first, int64_t count);

  // A picture. A video's is the one shown at the frame's timestamp, to within kTimeTolerance.
  // Throws Error naming file, episode and frame.
  const Picture& ReadPicture(size_t episode, const Feature& feature, int64_t frame);

  // Files of an episode, in the data set's folder.
  std::string DataPath(const Episode& episode) const;
  std::string VideoPath(const Episode& episode, const Feature& feature) const;
  // The row of the episode's first frame in its file.
  int64_t FirstRow(const Episode& episode) const;
  // The video that an episode is in.
  VideoReader& Video(const Episode& episode, const Feature& feature);

 private:
  struct Frames {  // of one episode and feature
    size_t episode = 0;
    int64_t first = 0;
    parquet::Column column;
  };

  const parquet::Reader& Data(const std::string& path);
  const Picture& ReadImage(size_t episode, const Feature& feature, int64_t frame);
  double Timestamp(size_t episode, int64_t frame);
  std::string Where(const std::string& file, size_t episode) const;

  std::string folder_;
  Info info_;
  Tasks tasks_;
  std::vector<Episode> episodes_, leftovers_;
  std::map<std::pair<int64_t, int64_t>, int64_t> first_frames_;  // of data files
  std::list<parquet::Reader> open_;                              // the last used first
  std::map<std::string, std::pair<std::string, std::unique_ptr<VideoReader>>> videos_;
  std::map<std::string, Frames> frames_;
  Frames timestamps_;
  Picture picture_;
};

}  // namespace mjp::datasets

#endif  // DATASETS_DATASET_H_

#ifndef DATASETS_CONVERT_ARRAY_SOURCE_H_
#define DATASETS_CONVERT_ARRAY_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "datasets/convert/convert.h"
#include "datasets/format/info.h"

// Data sets that are arrays with a row per frame: zarr, HDF5.

namespace mjp::datasets {

// One array of a source. Its first axis is the frames.
struct SourceArray {
  std::string name;            // as the source calls it
  std::vector<int64_t> shape;  // of a frame
  std::string dtype;           // LeRobot's word
};

class ArraySource {
 public:
  virtual ~ArraySource() = default;
  virtual const char* layout() const = 0;
  virtual const std::vector<SourceArray>& arrays() const = 0;
  virtual int64_t episodes() const = 0;
  virtual int64_t Length(int64_t episode) = 0;
  // Frames first ... first + count - 1 of an episode, (count, shape), as doubles. Throws Error
  // naming file and array.
  virtual std::vector<double> Read(int64_t episode, const SourceArray& array, int64_t first,
                                   int64_t count) = 0;
  // The arrays that are observation.state if nobody says others.
  virtual std::vector<std::string> DefaultState() const = 0;
};

std::unique_ptr<ArraySource> OpenZarr(const std::string& folder);
// A robomimic file, or a folder of ACT's episode_*.hdf5.
std::unique_ptr<ArraySource> OpenHdf5(const std::string& path);

// Converts such a source; options.task and options.fps must be given.
ConvertResult ConvertArrays(ArraySource& source, const ConvertOptions& options);

// "<destination>: episode <n>: <what> is not that of <source>": it was begun from another.
Error OtherSource(const ConvertOptions& options, int64_t episode, const std::string& what);

// Thrown where a conversion is stopped while it compares what was begun with the source.
struct StoppedComparison {
  std::string layout;
};

// Tells options.progress, where there is one, that `done` of `total` episodes were compared. Throws
// StoppedComparison, with the source's `layout`, where it ends the conversion.
void TellCompared(const ConvertOptions& options, const std::string& layout, int64_t done,
                  int64_t total);

// Converts a LeRobotDataset 2.0 or 2.1.
ConvertResult ConvertVersion2(const ConvertOptions& options);

}  // namespace mjp::datasets

#endif  // DATASETS_CONVERT_ARRAY_SOURCE_H_

#ifndef DATASETS_CONVERT_CONVERT_H_
#define DATASETS_CONVERT_CONVERT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mjp::datasets {

struct ConvertOptions {
  std::string source, destination;
  // What the source does not say; left empty or 0, the source's own. LeRobot 2 says all of it.
  std::string task;  // of all episodes, in words
  int fps = 0;
  // Arrays that are put together to observation.state, such as robomimic's; empty: the layout's.
  std::vector<std::string> state;
  bool video = false;  // pictures become AV1 rather than PNG
  // Called after each episode with those in the destination and those in the source, and before,
  // where some are there, while they are compared, with how many are. Called with 0 while integers
  // of HDF5 and zarr are looked at, before all that. False ends the conversion, which the same call
  // later goes on with.
  std::function<bool(int64_t done, int64_t total)> progress;
};

struct ConvertResult {
  std::string layout;  // what the source is: "LeRobot v2.1", "zarr", "robomimic", "ACT"
  int64_t episodes = 0, frames = 0;
  bool whole = true;  // false: ended by progress
};

// Makes a LeRobotDataset v3.0 in `destination` of a data set in another layout, or goes on with one
// that was begun: LeRobot 2.0 and 2.1 (a folder; videos are taken as they are), Diffusion Policy's
// replay buffers (a zarr folder), robomimic's and ACT's HDF5 (a file, or a folder of episodes).
// The source is only read. Throws Error that names file, episode and what is missing.
ConvertResult Convert(const ConvertOptions& options);

}  // namespace mjp::datasets

#endif  // DATASETS_CONVERT_CONVERT_H_

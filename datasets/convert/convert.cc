#include "datasets/convert/convert.h"

#include <filesystem>

#include "base/error.h"
#include "datasets/convert/array_source.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;

bool IsHdf5(const fs::path& path) {
  const std::string extension = path.extension();
  return extension == ".hdf5" || extension == ".h5";
}

bool HasHdf5(const std::string& folder) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (IsHdf5(entry.path())) return true;
  }
  return false;
}

ConvertResult Converted(const ConvertOptions& options) {
  const std::string& source = options.source;
  std::error_code none;
  if (!fs::exists(source, none)) throw BadInput(source + ": there is no such file or folder");
  if (fs::equivalent(source, options.destination, none)) {
    throw Error(ExitCode::kUsage, source + ": is source and destination; name another folder");
  }
  if (fs::exists(source + "/meta/info.json")) return ConvertVersion2(options);
  std::unique_ptr<ArraySource> arrays;
  if (fs::exists(source + "/.zgroup")) {
    arrays = OpenZarr(source);
  } else if (IsHdf5(source) || HasHdf5(source)) {
    arrays = OpenHdf5(source);
  } else if (fs::path(source).extension() == ".zip") {
    throw Unsupported(source + ": is an archive; unpack it, and convert the folder");
  } else {
    throw Unsupported(source +
                      ": is no data set that is known: a LeRobotDataset has meta/info.json, a zarr "
                      "folder .zgroup, robomimic's and ACT's files end in .hdf5");
  }
  if (options.task.empty() || options.fps < 1) {
    throw Error(ExitCode::kUsage, source + ": " + arrays->layout() +
                                      " says neither what is done nor how fast: give --task and "
                                      "--fps (Push-T: 10, robomimic: 20, ALOHA: 50)");
  }
  return ConvertArrays(*arrays, options);
}

}  // namespace

Error OtherSource(const ConvertOptions& options, int64_t episode, const std::string& what) {
  return BadInput(options.destination + ": episode " + std::to_string(episode) + ": " + what +
                  " is not that of " + options.source + "; name another folder");
}

void TellCompared(const ConvertOptions& options, const std::string& layout, int64_t done,
                  int64_t total) {
  if (options.progress && !options.progress(done, total)) throw StoppedComparison{layout};
}

ConvertResult Convert(const ConvertOptions& options) {
  try {
    return Converted(options);
  } catch (const StoppedComparison& stopped) {
    const std::string path = options.destination + "/meta/info.json";
    if (!fs::exists(path)) return {stopped.layout, 0, 0, false};  // before there was a data set
    const Info begun = ReadInfo(path);
    return {stopped.layout, begun.episodes, begun.frames, false};
  }
}

}  // namespace mjp::datasets

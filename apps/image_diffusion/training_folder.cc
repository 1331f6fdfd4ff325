#include "apps/image_diffusion/training_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/folders.h"
#include "tasks/results/run_differences.h"

namespace mjp::app {
namespace {

constexpr char kHash[] = "pictures_sha256", kCount[] = "pictures";
constexpr size_t kLogLimit = size_t{1} << 30;

std::string RunFile(const std::string& folder) { return folder + "/run.json"; }
std::string LogFile(const std::string& folder) { return folder + "/log.jsonl"; }

// The step of a line of the log; more than any where the line is torn.
int64_t StepOf(const std::string& line) {
  const mjp::Json json = mjp::Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool whole = json.is_object() && json.contains("step") && json["step"].is_number_integer();
  return whole ? json["step"].get<int64_t>() : INT64_MAX;
}

}  // namespace

mjp::Json DescribeTraining(const ImageTrainOptions& options, const mjp::PictureSet& pictures,
                           const std::string& device) {
  return {{"dataset", options.data.dataset},
          {kCount, pictures.count()},
          {kHash, mjp::PicturesHash(pictures)},
          {"image_size", pictures.size},
          {"channels", pictures.channels},
          {"unet_channels", options.unet_channels},
          {"batch_size", options.batch},
          {"learning_rate", options.learning_rate},
          {"warmup", options.warmup},
          {"average_decay", options.average_decay},
          {"full_precision", options.full_precision},
          {"seed", options.seed},
          {"device", device}};
}

TrainingFolder::TrainingFolder(const std::string& path, const mjp::Json& run) : path_(path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw mjp::BadInput(path + ": cannot create the folder: " + error.message() +
                        "; give another --out");
  }
  lock_ = LockFolder(path, "training");
  for (const std::string& folder : {path, path + "/checkpoint"}) RemoveLeftovers(folder);
  const std::string text = run.dump(2) + "\n";
  if (!std::filesystem::exists(RunFile(path))) {
    if (std::filesystem::exists(path + "/state.safetensors")) {
      throw mjp::BadInput(path +
                          ": the training there is of an earlier build, which did not write "
                          "on which pictures; give another --out");
    }
    WriteFileAtomically(RunFile(path), text);
    return;
  }
  const auto differences =
      RunDifferences(ReadFile(RunFile(path), 1 << 20), RunFile(path), text, "this training");
  if (differences.empty()) return;
  throw mjp::BadInput(path + ": another training began there: " + WasAndIs(differences) +
                      "; go on with the options it began with, or give another --out");
}

void TrainingFolder::OpenLog(int64_t step) {
  const std::string file = LogFile(path_);
  std::string kept;
  if (std::filesystem::exists(file)) {
    std::istringstream lines(ReadFile(file, kLogLimit));
    for (std::string line; std::getline(lines, line);) {
      if (StepOf(line) <= step) kept += line + "\n";
    }
  }
  WriteFileAtomically(file, kept);
  log_ = mjp::FileDescriptor(::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (log_.get() < 0) throw mjp::FileError("cannot open", file);
}

void TrainingFolder::Log(const mjp::Json& line) {
  WriteDurably(log_.get(), line.dump() + "\n", LogFile(path_));
}

void CheckOutsideOfData(const std::string& out, const std::string& data) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path inner = fs::weakly_canonical(fs::absolute(out, error), error);
  const fs::path outer = fs::canonical(data, error);
  if (error || data.empty()) return;  // who reads it says so
  if (std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first != outer.end()) {
    return;
  }
  throw mjp::Error(mjp::ExitCode::kUsage, "--out " + out + ": is in the data set " + data +
                                              ", which the run's files would spoil; give another");
}

void CheckSamePictures(const std::string& folder, const mjp::PictureSet& pictures) {
  const std::string file = RunFile(folder);
  const mjp::Json run = mjp::ReadJson(file);
  if (!run.is_object() || !run.contains(kHash) || !run.contains(kCount)) {
    throw mjp::BadInput(file + ": is not the run.json of a training; name its folder with --run");
  }
  if (run[kHash] == mjp::PicturesHash(pictures)) return;
  throw mjp::BadInput(folder + ": was trained on other pictures, " + run[kCount].dump() +
                      " of them; these are " + std::to_string(pictures.count()) +
                      ": give the --data and --pictures of the training");
}

}  // namespace mjp::app

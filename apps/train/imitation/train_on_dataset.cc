#include "apps/train/imitation/train_on_dataset.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "apps/train/imitation/run.h"
#include "apps/train/run_length.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace mjp::app {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 28;  // of statistics

RecordedOptions DataOptionsOf(const ImitationOptions& imitation, const TrainOptions& options) {
  RecordedOptions data = imitation.data;
  data.resize_height = imitation.shape.resize_height;
  data.resize_width = imitation.shape.resize_width;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  data.threads = options.data.threads > 0 ? options.data.threads : cores;
  return data;
}

}  // namespace

bool TrainOnDataset(const ImitationOptions& imitation, const TrainOptions& options, Ranks& ranks,
                    std::ostream& progress, const std::atomic<bool>& stop) {
  CheckLength(options);
  if (ranks.size() > 1)
    throw Error(ExitCode::kUsage, "--dataset trains on one GPU: leave --gpus out");
  ChooseDevice(options.device, ranks);  // before the frames are read
  const RecordedOptions read = DataOptionsOf(imitation, options);
  RecordedFrames frames = LoadRecordedFrames(read, stop);
  Json data = {
      {"frames", frames.frames()}, {"fps", frames.fps}, {"validation", imitation.data.validation}};
  data["horizon"] = imitation.shape.horizon;
  data["content"] = frames.content;
  data["crop"] = {imitation.shape.crop_width, imitation.shape.crop_height};
  // by which earlier builds told two recordings of one length apart
  data["statistics"] =
      Sha256(mjp::ReadFile(imitation.data.folder + "/meta/stats.json", kMostBytes));
  for (const CameraFeature& camera : frames.cameras) data["cameras"].push_back(camera.name);
  ImitationRun run(std::move(frames), imitation.shape, data, /*grows=*/false, options, ranks, stop);
  if (!imitation.score.task.empty()) {
    ScoreOptions score = imitation.score;
    score.threads = read.threads;
    run.ScoreBy(score);
  }
  return run.Train(1, progress);
}

}  // namespace mjp::app

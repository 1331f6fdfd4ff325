#include "tasks/demonstration/recorder.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "base/threads.h"
#include "datasets/dataset.h"
#include "datasets/recording/writer.h"
#include "tasks/demonstration/demonstration.h"
#include "tasks/demonstration/episode_world.h"
#include "tasks/task_code.h"

namespace mjp::app {
namespace {

constexpr int kMostMisses = 200;  // starts in a row that are not kept

// What a recording remembers of how it was begun: meta/recording.json.
Json Conditions(const RecordOptions& options, const TaskFile& file) {
  return {{"task", file.name()},
          {"model", file.hash()},
          {"by", options.by},
          {"seed", options.seed},
          {"keep", options.keep_all ? "all" : "success"},
          {"max_steps", options.steps}};
}

// Notes the conditions, or compares them with those that the data set was begun with.
void CheckConditions(const RecordOptions& options, const TaskFile& file, int64_t episodes) {
  const std::string path = options.out + "/meta/recording.json";
  const Json now = Conditions(options, file);
  if (!std::filesystem::exists(path)) {
    if (episodes == 0) return WriteFileAtomically(path, now.dump(2) + "\n");
    throw BadInput(options.out +
                   ": is a data set that was not begun by mjpolicy record; give another --out");
  }
  const Json before = ReadJson(path);
  for (const auto& [key, value] : now.items()) {
    if (before.contains(key) && before[key] == value) continue;
    throw BadInput(options.out + ": was recorded with " + key + " " +
                   (before.contains(key) ? before[key].dump() : "none") + ", now it is " +
                   value.dump() + "; go on with that, or give another --out");
  }
}

// The seed of the data set's last episode.
std::optional<uint32_t> LastSeed(const std::string& folder) {
  datasets::Dataset dataset(folder);
  if (dataset.episodes().empty()) return {};
  const size_t last = dataset.episodes().size() - 1;
  const auto column = dataset.Read(last, *dataset.info().Find("seed"), 0, 1);
  return static_cast<uint32_t>(column.values.ints.at(0));
}

class Recorder {
 public:
  Recorder(const RecordOptions& options, std::shared_ptr<const TaskFile> file,
           const DemonstratorFactory& demonstrators,
           const std::function<void(const RecordProgress&)>& on_progress)
      : options_(options),
        file_(std::move(file)),
        on_progress_(on_progress),
        steps_(options.steps > 0 ? options.steps : file_->rules().steps()),
        frames_(*file_, options.pictures),
        writer_(options.out, InfoOf(*file_, options.pictures)),
        replay_(file_, MakeTaskCode(*file_)) {
    writer_.Finish();  // what a killed recorder left
    CheckConditions(options, *file_, writer_.saved());
    progress_.ended = progress_.saved = writer_.saved();
    const std::optional<uint32_t> last = LastSeed(options.out);
    next_ = last ? *last + uint64_t{1} : options.seed;
    for (int i = 0; i < std::max(1, options.threads); ++i) {
      players_.push_back(
          {std::make_unique<EpisodeWorld>(file_, MakeTaskCode(*file_)), demonstrators()});
    }
  }

  RecordProgress Run(const std::atomic<bool>& stop) {
    while (writer_.episodes() < options_.episodes && !stop) {
      const std::vector<Demonstration> shown = Play(stop);
      for (const Demonstration& each : shown) {
        if (writer_.episodes() == options_.episodes) break;
        Take(each);
      }
    }
    writer_.Finish();
    Say();
    return progress_;
  }

 private:
  struct Player {
    std::unique_ptr<EpisodeWorld> world;
    std::unique_ptr<Demonstrator> demonstrator;
  };

  // The next starts, one for each thread: those that were played.
  std::vector<Demonstration> Play(const std::atomic<bool>& stop) {
    const uint64_t left = (uint64_t{1} << 32) - std::min(next_, uint64_t{1} << 32);
    const size_t count = std::min<uint64_t>(players_.size(), left);
    if (count == 0) throw Error(ExitCode::kUsage, "--seed: there are no seeds beyond 2^32");
    std::vector<Demonstration> shown(count);
    std::atomic<size_t> next = 0;
    RunOnThreads(static_cast<int>(count), [&](const std::atomic<bool>& failed) {
      for (size_t i = next++; i < count && !failed && !stop; i = next++) {
        shown[i] = Demonstrate(*players_[i].world, *players_[i].demonstrator,
                               static_cast<uint32_t>(next_ + i), steps_);
      }
    });
    if (stop) return {};
    next_ += count;
    return shown;
  }

  void Take(const Demonstration& shown) {
    const EpisodeResult& result = shown.result;
    ++progress_.played;
    progress_.succeeded += result.success();
    misses_ = result.valid && (result.success() || options_.keep_all) ? 0 : misses_ + 1;
    if (misses_ == 0) Save(shown);
    Say();
    if (misses_ < kMostMisses) return;
    writer_.Finish();
    throw Error(ExitCode::kPartial,
                options_.out + ": none of the last " + std::to_string(kMostMisses) +
                    " starts was a success; record by somebody who can do the task, or with "
                    "--keep all" +
                    (result.valid ? "" : " (" + result.reason + ")"));
  }

  void Save(const Demonstration& shown) {
    try {
      Replay(replay_, shown,
             [&](int step) { writer_.AddFrame(frames_.Make(replay_, shown, step)); });
    } catch (...) {
      writer_.DropEpisode();
      throw;
    }
    writer_.EndEpisode();
  }

  void Say() {
    progress_.ended = writer_.episodes();
    progress_.saved = writer_.saved();
    on_progress_(progress_);
  }

  const RecordOptions& options_;
  std::shared_ptr<const TaskFile> file_;
  const std::function<void(const RecordProgress&)>& on_progress_;
  const int steps_;
  FrameMaker frames_;
  datasets::DatasetWriter writer_;
  EpisodeWorld replay_;
  std::vector<Player> players_;
  uint64_t next_ = 0;  // seed
  int misses_ = 0;
  RecordProgress progress_;
};

}  // namespace

RecordProgress Record(const RecordOptions& options, std::shared_ptr<const TaskFile> file,
                      const DemonstratorFactory& demonstrators,
                      const std::function<void(const RecordProgress&)>& on_progress,
                      const std::atomic<bool>& stop) {
  Recorder recorder(options, std::move(file), demonstrators, on_progress);
  return recorder.Run(stop);
}

}  // namespace mjp::app

#include "tasks/demonstration/recorder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "tasks/demonstration/demonstration.h"
#include "tasks/demonstration/episode_world.h"
#include "tasks/task_code.h"

namespace mjp::app {
namespace {

constexpr int kMostMisses = 200;  // starts in a row that are not kept

class Recorder {
 public:
  Recorder(const RecordOptions& options, std::shared_ptr<const TaskFile> file,
           const DemonstratorFactory& demonstrators,
           const std::function<void(const RecordProgress&)>& on_progress)
      : options_(options),
        file_(std::move(file)),
        on_progress_(on_progress),
        steps_(options.steps > 0 ? options.steps : file_->rules().steps()),
        players_(MakePlayers(options.threads, file_, demonstrators)),
        writer_(options, file_),
        next_(writer_.next_seed()) {
    progress_.ended = progress_.saved = writer_.saved();
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

  static std::vector<Player> MakePlayers(int threads, const std::shared_ptr<const TaskFile>& file,
                                         const DemonstratorFactory& demonstrators) {
    std::vector<Player> players;
    for (int i = 0; i < std::max(1, threads); ++i) {
      players.push_back(
          {std::make_unique<EpisodeWorld>(file, MakeTaskCode(*file)), demonstrators()});
    }
    return players;
  }

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
    if (misses_ == 0) writer_.Save(shown);
    Say();
    if (misses_ < kMostMisses) return;
    writer_.Finish();
    const std::string why = result.valid ? "" : " (" + result.reason + ")";
    const std::string none = options_.out + ": none of the last " + std::to_string(kMostMisses);
    throw Error(ExitCode::kPartial,
                options_.keep_all
                    ? none + " starts was valid" + why +
                          "; only valid episodes are kept: mend the model, or its starts"
                    : none +
                          " starts was a success; record by somebody who can do the task, or "
                          "with --keep all" +
                          why);
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
  std::vector<Player> players_;  // before the data set, which is not begun if there are none
  DemonstrationWriter writer_;
  uint64_t next_;  // seed
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

#include "tasks/aloha/demonstrations.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ostream>
#include <thread>

#include "base/error.h"
#include "base/npy.h"
#include "base/threads.h"
#include "tasks/aloha/drift.h"
#include "tasks/aloha/expert.h"
#include "tasks/aloha/mishap.h"
#include "tasks/physics/random_stream.h"
#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

Mishap MishapOf(uint32_t seed) { return static_cast<Mishap>(seed % kMishaps); }

std::string Share(const char* what, int count, int all) {
  const Interval interval = Wilson95(count, all);
  char text[200];
  std::snprintf(text, sizeof(text), "%s in %d of %d: %.2f %%, 95 %% interval %.1f to %.1f\n", what,
                count, all, all > 0 ? 100.0 * count / all : 0, 100 * interval.low,
                100 * interval.high);
  return text;
}

void ReportOn(const std::vector<TransferEpisode>& episodes, const std::string& kind,
              std::ostream& report) {
  int all = 0, success = 0, handed_over = 0;
  std::vector<double> first;
  for (const TransferEpisode& episode : episodes) {
    if (!episode.counts) continue;
    ++all;
    handed_over += episode.handed_over;
    if (episode.first_success < 0) continue;
    ++success;
    first.push_back(episode.first_success + 1);
  }
  report << kind << Share("reward 4", success, all) << kind
         << Share("handed over at the end", handed_over, all);
  if (!first.empty()) {
    report << kind << "first reward 4 after " << Quantile(first, 0.5) << " control steps (median), "
           << Quantile(first, 1) << " (latest)\n";
  }
}

NpyArray Integers(const std::vector<int64_t>& values) {
  NpyArray array = {NpyType::kInt64, {static_cast<int64_t>(values.size())}, {}};
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  array.bytes.assign(bytes, bytes + values.size() * sizeof(int64_t));
  return array;
}

// A folder of recordings that appears under its name when it is whole. Nothing is replaced.
class RecordingFolder {
 public:
  // Throws Error where there is something at `path` already, or where it cannot be made.
  explicit RecordingFolder(const std::string& path)
      : path_(std::filesystem::path(path).lexically_normal()) {
    if (path_.filename().empty()) path_ = path_.parent_path();
    unfinished_ = path_.string() + ".unfinished" + std::to_string(::getpid());
    std::error_code error;
    if (std::filesystem::is_directory(path_, error) && !std::filesystem::is_empty(path_, error)) {
      throw Error(ExitCode::kUsage,
                  path + ": is not empty, and recordings replace nothing; give another --out");
    }
    if (std::filesystem::is_regular_file(path_, error)) {
      throw Error(ExitCode::kUsage, path + ": is a file; give another --out");
    }
    if (!std::filesystem::create_directories(unfinished_, error)) {
      throw BadInput(path + ": cannot be made: " + error.message());
    }
  }
  ~RecordingFolder() {
    std::error_code none;
    std::filesystem::remove_all(unfinished_, none);
  }
  RecordingFolder(const RecordingFolder&) = delete;
  RecordingFolder& operator=(const RecordingFolder&) = delete;

  void Add(const std::string& name, const NpyArray& array) const {
    WriteNpy(unfinished_ / name, array);
  }
  void Finish() const {
    std::error_code error;
    std::filesystem::rename(unfinished_, path_, error);
    if (error) throw BadInput(path_.string() + ": cannot be made: " + error.message());
  }

 private:
  std::filesystem::path path_, unfinished_;
};

void Write(const std::vector<TransferEpisode>& episodes, const RecordingFolder& folder) {
  std::vector<double> states, actions;
  std::vector<int64_t> ends, seeds;
  for (const TransferEpisode& episode : episodes) {
    if (!episode.counts || !episode.handed_over) continue;
    for (const AlohaNumbers& row : episode.states)
      states.insert(states.end(), row.begin(), row.end());
    for (const AlohaNumbers& row : episode.actions)
      actions.insert(actions.end(), row.begin(), row.end());
    ends.push_back(static_cast<int64_t>(states.size()) / 14);
    seeds.push_back(episode.seed);
  }
  const int64_t rows = static_cast<int64_t>(states.size()) / 14;
  folder.Add("state.npy", MakeNpy(states, {rows, 14}));
  folder.Add("action.npy", MakeNpy(actions, {rows, 14}));
  folder.Add("episode_ends.npy", Integers(ends));
  folder.Add("seed.npy", Integers(seeds));
  folder.Finish();
}

}  // namespace

TransferEpisode PlayTransfer(const TransferOptions& options, uint32_t seed,
                             TransferCube& simulation) {
  TransferEpisode episode;
  episode.seed = seed;
  TransferExpert expert(simulation.model());
  if (options.mishaps) {
    episode.counts = PlayMishap(MishapOf(seed), seed, simulation, expert);
    if (!episode.counts) return episode;
  } else {
    simulation.Start(seed);
  }
  expert.Begin(options.variety ? DrawStyle(seed) : Style());
  RandomStream random(seed, 2);
  Drift drift(options.noise, 0);
  for (int t = 0; t < TransferCube::kSteps; ++t) {
    AlohaNumbers action = expert.Act(simulation.data());
    episode.states.push_back(simulation.State());
    episode.actions.push_back(action);
    drift.Add(random, action);
    const bool success = simulation.Step(action) == TransferCube::kRewards;
    if (success && episode.first_success < 0) episode.first_success = t;
  }
  episode.handed_over = simulation.HandedOver();
  return episode;
}

bool RunTransfers(const TransferOptions& options, std::ostream& report,
                  const std::atomic<bool>& stop) {
  if (options.seed + static_cast<uint64_t>(options.episodes) > uint64_t{1} << 32) {
    throw Error(ExitCode::kUsage, "--seed " + std::to_string(options.seed) + " with --episodes " +
                                      std::to_string(options.episodes) +
                                      ": the seed of every start must be less than 2^32");
  }
  std::optional<RecordingFolder> folder;
  if (!options.out.empty()) folder.emplace(options.out);
  std::vector<TransferEpisode> episodes(options.episodes);
  std::atomic<int> next = 0;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = std::min(options.threads > 0 ? options.threads : cores, options.episodes);
  RunOnThreads(threads, [&](const std::atomic<bool>& failed) {
    TransferCube simulation;
    for (int i = next++; i < options.episodes && !failed && !stop; i = next++) {
      episodes[i] = PlayTransfer(options, options.seed + static_cast<uint32_t>(i), simulation);
      if (options.out.empty()) episodes[i].states = episodes[i].actions = {};
    }
  });
  if (stop) return false;
  if (options.mishaps) {
    for (int kind = 0; kind < kMishaps; ++kind) {
      std::vector<TransferEpisode> some;
      std::ranges::copy_if(episodes, std::back_inserter(some), [kind](const auto& episode) {
        return MishapOf(episode.seed) == static_cast<Mishap>(kind);
      });
      ReportOn(some, std::string(NameOf(static_cast<Mishap>(kind))) + ": ", report);
    }
  }
  ReportOn(episodes, "", report);
  if (folder) Write(episodes, *folder);
  return true;
}

}  // namespace mjp::app

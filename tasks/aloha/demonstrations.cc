#include "tasks/aloha/demonstrations.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <optional>
#include <ostream>
#include <thread>

#include "base/error.h"
#include "base/threads.h"
#include "tasks/aloha/drift.h"
#include "tasks/aloha/expert.h"
#include "tasks/aloha/mishap.h"
#include "tasks/aloha/recording_folder.h"
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
  if (!options.out.empty()) folder.emplace(options);
  std::vector<TransferEpisode> episodes(options.episodes);
  std::atomic<int> next = 0;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = std::min(options.threads > 0 ? options.threads : cores, options.episodes);
  RunOnThreads(threads, [&](const std::atomic<bool>& failed) {
    TransferCube simulation;
    for (int i = next++; i < options.episodes && !failed && !stop; i = next++) {
      const uint32_t seed = options.seed + static_cast<uint32_t>(i);
      if (std::optional<TransferEpisode> kept = folder ? folder->Find(seed) : std::nullopt) {
        episodes[i] = std::move(*kept);
        continue;
      }
      episodes[i] = PlayTransfer(options, seed, simulation);
      if (folder) {
        folder->Keep(episodes[i]);
      } else {
        episodes[i].states = episodes[i].actions = {};
      }
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
  if (folder) folder->Finish(episodes);
  return true;
}

}  // namespace mjp::app

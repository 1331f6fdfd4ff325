#include "tasks/aloha/recording_folder.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "base/npy.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNumbers = std::tuple_size_v<AlohaNumbers>;
constexpr size_t kColumns = 2 * kNumbers;  // of a kept episode: state, action

// What an episode is a function of, beside its seed.
Json OptionsOf(const TransferOptions& options) {
  return {{"version", options.version},
          {"noise", options.noise},
          {"variety", options.variety},
          {"mishaps", options.mishaps}};
}

NpyArray Integers(const std::vector<int64_t>& values) {
  NpyArray array = {NpyType::kInt64, {static_cast<int64_t>(values.size())}, {}};
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  array.bytes.assign(bytes, bytes + values.size() * sizeof(int64_t));
  return array;
}

}  // namespace

RecordingFolder::RecordingFolder(const TransferOptions& options)
    : path_(fs::path(options.out).lexically_normal()) {
  if (path_.filename().empty()) path_ = path_.parent_path();
  unfinished_ = path_.string() + ".unfinished";
  std::error_code error;
  if (fs::is_directory(path_, error) && !fs::is_empty(path_, error)) {
    throw Error(ExitCode::kUsage, options.out +
                                      ": is not empty, and recordings replace nothing; give "
                                      "another --out");
  }
  if (fs::is_regular_file(path_, error)) {
    throw Error(ExitCode::kUsage, options.out + ": is a file; give another --out");
  }
  fs::create_directories(unfinished_, error);
  if (error) throw BadInput(options.out + ": cannot be made: " + error.message());
  lock_ = LockFolder(unfinished_, "demonstration");
  const std::string file = unfinished_ / "options.json";
  const Json wanted = OptionsOf(options);
  if (!fs::exists(file)) {
    WriteFileAtomically(file, wanted.dump(1) + "\n");
  } else if (const Json found = ReadJson(file); found != wanted) {
    throw Error(ExitCode::kUsage, file + ": was begun with " + found.dump() + ", now it is " +
                                      wanted.dump() +
                                      "; go on with those, remove that folder, or give another "
                                      "--out");
  }
}

std::string RecordingFolder::FileOf(uint32_t seed) const {
  return unfinished_ / (std::to_string(seed) + ".npy");
}

// The first row holds seed, counts, first_success, handed_over; each other a state and an action.
void RecordingFolder::Keep(const TransferEpisode& episode) const {
  std::vector<double> values(kColumns);
  values[0] = episode.seed;
  values[1] = episode.counts;
  values[2] = episode.first_success;
  values[3] = episode.handed_over;
  for (size_t t = 0; t < episode.states.size(); ++t) {
    values.insert(values.end(), episode.states[t].begin(), episode.states[t].end());
    values.insert(values.end(), episode.actions[t].begin(), episode.actions[t].end());
  }
  WriteNpy(FileOf(episode.seed),
           MakeNpy(values, {static_cast<int64_t>(values.size() / kColumns), kColumns}));
}

std::optional<TransferEpisode> RecordingFolder::Find(uint32_t seed) const {
  const std::string file = FileOf(seed);
  if (!fs::exists(file)) return {};
  const NpyArray array = ReadNpy(file);
  const std::vector<double> values = array.ToDoubles();
  if (array.type != NpyType::kFloat64 || array.shape.size() != 2 || array.shape[0] < 1 ||
      array.shape[1] != static_cast<int64_t>(kColumns) || values[0] != seed) {
    throw BadInput(file + ": is no episode of this seed; remove it, and it is played again");
  }
  TransferEpisode episode;
  episode.seed = seed;
  episode.counts = values[1] != 0;
  episode.first_success = static_cast<int>(values[2]);
  episode.handed_over = values[3] != 0;
  for (auto row = values.begin() + kColumns; row != values.end(); row += kColumns) {
    std::copy_n(row, kNumbers, episode.states.emplace_back().begin());
    std::copy_n(row + kNumbers, kNumbers, episode.actions.emplace_back().begin());
  }
  return episode;
}

void RecordingFolder::Finish(const std::vector<TransferEpisode>& episodes) {
  std::vector<double> states, actions;
  std::vector<int64_t> ends, seeds;
  for (const TransferEpisode& episode : episodes) {
    if (!episode.counts || !episode.handed_over) continue;
    for (const AlohaNumbers& row : episode.states)
      states.insert(states.end(), row.begin(), row.end());
    for (const AlohaNumbers& row : episode.actions)
      actions.insert(actions.end(), row.begin(), row.end());
    ends.push_back(static_cast<int64_t>(states.size() / kNumbers));
    seeds.push_back(episode.seed);
  }
  const fs::path whole = unfinished_ / "whole";
  std::error_code error;
  fs::create_directory(whole, error);
  if (error) throw BadInput(whole.string() + ": cannot be made: " + error.message());
  const auto rows = static_cast<int64_t>(states.size() / kNumbers);
  WriteNpy(whole / "state.npy", MakeNpy(states, {rows, kNumbers}));
  WriteNpy(whole / "action.npy", MakeNpy(actions, {rows, kNumbers}));
  WriteNpy(whole / "episode_ends.npy", Integers(ends));
  WriteNpy(whole / "seed.npy", Integers(seeds));
  fs::rename(whole, path_, error);
  if (error) throw BadInput(path_.string() + ": cannot be made: " + error.message());
  fs::remove_all(unfinished_, error);
}

}  // namespace mjp::app

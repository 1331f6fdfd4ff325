#include "tasks/pusht/planner/demonstrations.h"

#include <fcntl.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <ostream>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/folders.h"
#include "base/npy.h"
#include "base/sha256.h"
#include "base/text_stream.h"
#include "base/threads.h"

namespace mjp::app {
namespace {

constexpr size_t kTextLimit = 64 << 20;  // bytes of a text file that is read whole

std::string ManifestPath(const std::string& folder) { return folder + "/demonstrations.json"; }
std::string LogPath(const std::string& folder) { return folder + "/streams.jsonl"; }
std::string ShardPath(const std::string& folder, int64_t stream) {
  char name[32];
  std::snprintf(name, sizeof(name), "/rows-%05" PRId64 ".npy", stream);
  return folder + name;
}

int64_t StreamCount(const DemonstrateOptions& options) {
  return (options.rows + options.stream.rows - 1) / options.stream.rows;
}

// Everything that the bytes depend on.
std::string ManifestText(const DemonstrateOptions& options) {
  const StreamOptions& s = options.stream;
  const PlanCost& c = s.planner.cost;
  mjp::TextWriter text;
  text << "{\n  \"streams\": " << StreamCount(options) << ",\n  \"rows_per_stream\": " << s.rows
       << ",\n  \"seed\": " << s.seed << ",\n  \"near_goal_share\": " << s.near_goal_share
       << ",\n  \"anywhere_share\": " << s.anywhere_share
       << ",\n  \"disturbed_share\": " << s.disturbed_share
       << ",\n  \"jolt_share\": " << s.jolt_share << ",\n  \"offset_share\": " << s.offset_share
       << ",\n  \"push_share\": " << s.push_share << ",\n  \"goal_coverage\": " << s.goal_coverage
       << ",\n  \"execute\": [" << s.min_execute << ", " << s.max_execute
       << "],\n  \"samples\": " << s.planner.samples << ",\n  \"rounds\": " << s.planner.rounds
       << ",\n  \"cost\": [" << c.distance << ", " << c.root_distance << ", " << c.reach << ", "
       << c.reach_radius << ", " << c.wall << ", " << c.wall_depth << ", " << c.speed << ", "
       << c.excess << ", " << c.speed_limit << ", " << c.turn << "]\n}\n";
  return text.str();
}

// A finished stream: how it went, and the hash of its file ("" where a build before hashes made
// it).
struct Finished {
  StreamStatistics statistics;
  std::string sha256;
};
using FinishedStreams = std::map<int64_t, Finished>;

std::string LogLine(int64_t stream, const Finished& finished) {
  const StreamStatistics& s = finished.statistics;
  mjp::TextWriter line;
  line << "{\"stream\": " << stream << ", \"rows\": " << s.rows << ", \"episodes\": " << s.episodes
       << ", \"solved\": " << s.solved << ", \"steps\": " << s.steps;
  if (!finished.sha256.empty()) line << ", \"sha256\": \"" << finished.sha256 << "\"";
  line << "}\n";
  return line.str();
}

// Streams recorded as finished; a torn last line is dropped.
FinishedStreams ReadLog(const std::string& folder) {
  FinishedStreams finished;
  if (!std::filesystem::exists(LogPath(folder))) return finished;
  const std::string text = ReadFile(LogPath(folder), kTextLimit);
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    int64_t stream;
    StreamStatistics s;
    char hash[65] = "";
    const int fields = std::sscanf(line.c_str(),
                                   "{\"stream\": %" SCNd64 ", \"rows\": %" SCNd64
                                   ", \"episodes\": %" SCNd64 ", \"solved\": %" SCNd64
                                   ", \"steps\": %" SCNd64 ", \"sha256\": \"%64[0-9a-f]\"}",
                                   &stream, &s.rows, &s.episodes, &s.solved, &s.steps, hash);
    const bool hashed = line.find("sha256") != std::string::npos;
    if (fields != (hashed ? 6 : 5) || (hashed && std::strlen(hash) != 64) || s.rows < 0 ||
        s.episodes < 0 || s.steps < 0 || s.solved < 0 || s.solved > s.episodes) {
      throw mjp::BadInput(LogPath(folder) + ": not a stream's line: " + line +
                          "\nremove the folder and make the demonstrations again");
    }
    finished[stream] = {s, hash};
  }
  return finished;
}

std::string LogText(const FinishedStreams& finished) {
  std::string text;
  for (const auto& [stream, entry] : finished) text += LogLine(stream, entry);
  return text;
}

// Makes the folder this run's, or finds that it is already.
void ClaimFolder(const DemonstrateOptions& options) {
  std::error_code failed;
  std::filesystem::create_directories(options.out, failed);
  if (failed) {
    throw mjp::BadInput(options.out + ": cannot make the folder: " + failed.message());
  }
  const std::string manifest = ManifestText(options), path = ManifestPath(options.out);
  if (!std::filesystem::exists(path)) {
    WriteFileAtomically(path, manifest);
  } else if (ReadFile(path, kTextLimit) != manifest) {
    throw mjp::BadInput(path + ": the folder holds demonstrations made with other options: give " +
                        "another folder, or the options of that file");
  }
}

void CheckOptions(const DemonstrateOptions& options) {
  const StreamOptions& s = options.stream;
  if (options.rows < 1 || s.rows < 1) throw mjp::BadInput("demonstrations need at least one row");
  if (s.min_execute < 1 || s.max_execute < s.min_execute) {
    throw mjp::BadInput("demonstrations need 1 <= min_execute <= max_execute");
  }
  Planner validated(s.planner);
}

// Writes the rows of a stream; returns the hash of the file.
std::string WriteShard(const std::string& path, const std::vector<DemonstrationRow>& rows) {
  NpyArray array;
  array.type = NpyType::kFloat32;
  array.shape = {static_cast<int64_t>(rows.size()), kDemonstrationColumns};
  array.bytes.resize(rows.size() * sizeof(DemonstrationRow));
  std::memcpy(array.bytes.data(), rows.data(), array.bytes.size());
  const std::string text = NpyText(array, path);
  WriteFileAtomically(path, text);
  return mjp::Sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// The rows of a finished stream. Throws Error unless the file is what was written.
NpyArray ReadShard(const std::string& path, const Finished& finished) {
  constexpr size_t kHeader = 1 << 16;
  const size_t rows = static_cast<size_t>(finished.statistics.rows);
  const std::vector<uint8_t> bytes = mjp::ReadFile(path, kHeader + rows * sizeof(DemonstrationRow));
  const NpyArray array = ParseNpy(bytes, path);
  if (array.type != NpyType::kFloat32 ||
      array.shape != std::vector<int64_t>{finished.statistics.rows, kDemonstrationColumns}) {
    throw mjp::BadInput(path + ": not float32 of " + std::to_string(rows) + " x " +
                        std::to_string(kDemonstrationColumns) + " as streams.jsonl says");
  }
  if (!finished.sha256.empty() && mjp::Sha256(bytes) != finished.sha256) {
    throw mjp::BadInput(path +
                        ": is damaged: its hash is not that of streams.jsonl; make it again " +
                        "with the same mjpolicy demonstrate");
  }
  return array;
}

void AppendRows(const NpyArray& array, std::vector<DemonstrationRow>& rows) {
  const size_t old_size = rows.size();
  rows.resize(old_size + static_cast<size_t>(array.shape[0]));
  std::memcpy(rows.data() + old_size, array.bytes.data(), array.bytes.size());
}

// The folder while it is being filled; methods may be called from any thread.
class Collection {
 public:
  Collection(const DemonstrateOptions& options, std::ostream& log)
      : folder_(options.out), total_(StreamCount(options)), log_(log) {
    finished_ = ReadLog(folder_);
    std::erase_if(finished_, [&](const auto& entry) {
      return entry.first >= total_ || !Usable(entry.first, entry.second);
    });
    WriteFileAtomically(LogPath(folder_), LogText(finished_));  // without a torn line
    log_file_ =
        mjp::FileDescriptor(::open(LogPath(folder_).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (log_file_.get() < 0) throw mjp::FileError("cannot open", LogPath(folder_));
    for (const auto& [stream, entry] : finished_) done_.insert(stream);
  }
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  bool complete() const { return static_cast<int64_t>(finished_.size()) == total_; }

  // The next stream to be made, or -1.
  int64_t Take() {
    const std::lock_guard lock(mutex_);
    while (next_ < total_ && done_.contains(next_)) ++next_;
    return next_ < total_ ? next_++ : -1;
  }

  // Throws Error where the stream cannot be written; further ones are not added then.
  void Add(int64_t index, const Stream& stream) {
    const Finished entry{stream.statistics, WriteShard(ShardPath(folder_, index), stream.rows)};
    const std::lock_guard lock(mutex_);
    if (torn_) return;  // behind a torn line none could be read; the stream is made again
    torn_ = true;       // until it is known
    WriteDurably(log_file_.get(), LogLine(index, entry), LogPath(folder_));
    torn_ = false;
    finished_[index] = entry;
    log_ << Summary() << std::endl;
  }

  void Finish() { WriteFileAtomically(LogPath(folder_), LogText(finished_)); }

  std::string Summary() const {
    StreamStatistics sum;
    for (const auto& [stream, entry] : finished_) {
      const StreamStatistics& s = entry.statistics;
      sum.rows += s.rows;
      sum.episodes += s.episodes;
      sum.solved += s.solved;
      sum.steps += s.steps;
    }
    char text[160];
    const double episodes = static_cast<double>(std::max<int64_t>(sum.episodes, 1));
    std::snprintf(text, sizeof(text),
                  "%zu/%" PRId64 " streams, %" PRId64 " rows, %" PRId64 "/%" PRId64
                  " episodes solved (%.2f %%), %.1f steps on average",
                  finished_.size(), total_, sum.rows, sum.solved, sum.episodes,
                  100.0 * static_cast<double>(sum.solved) / episodes,
                  static_cast<double>(sum.steps) / episodes);
    return text;
  }

 private:
  // Whether a stream's rows are there as they were written; one that is damaged is made again.
  bool Usable(int64_t stream, const Finished& finished) {
    const std::string path = ShardPath(folder_, stream);
    if (!std::filesystem::exists(path)) return false;
    try {
      ReadShard(path, finished);
      return true;
    } catch (const mjp::Error& error) {
      log_ << error.what() << ": it is made again" << std::endl;
      return false;
    }
  }

  const std::string folder_;
  const int64_t total_;
  std::ostream& log_;
  std::mutex mutex_;
  mjp::FileDescriptor log_file_;
  bool torn_ = false;  // the log's last line
  int64_t next_ = 0;
  std::set<int64_t> done_;  // before this run
  FinishedStreams finished_;
};

}  // namespace

bool RunDemonstrate(const DemonstrateOptions& options, std::ostream& log,
                    const std::atomic<bool>& stop) {
  CheckOptions(options);
  ClaimFolder(options);
  Collection collection(options, log);
  const ModelPtr model = LoadModel(ModelPath("pusht_physics.xml"));
  const Scene scene(model.get());

  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  RunOnThreads(options.threads > 0 ? options.threads : cores, [&](const std::atomic<bool>& failed) {
    const DataPtr data = MakeData(model.get());
    for (int64_t i; !stop && !failed && (i = collection.Take()) >= 0;) {
      collection.Add(i, MakeStream(options.stream, i, scene, data.get()));
    }
  });
  if (!collection.complete()) return false;
  collection.Finish();
  log << "complete: " << collection.Summary() << std::endl;
  return true;
}

void AppendStream(const std::string& folder, int64_t index, const Stream& stream) {
  const std::string hash = WriteShard(ShardPath(folder, index), stream.rows);
  FinishedStreams finished = ReadLog(folder);
  finished[index] = {stream.statistics, hash};
  WriteFileAtomically(LogPath(folder), LogText(finished));
}

std::optional<std::vector<DemonstrationRow>> LoadStream(const std::string& folder, int64_t index) {
  const FinishedStreams streams = ReadLog(folder);
  const auto found = streams.find(index);
  if (found == streams.end()) return std::nullopt;
  std::vector<DemonstrationRow> rows;
  AppendRows(ReadShard(ShardPath(folder, index), found->second), rows);
  return rows;
}

std::vector<DemonstrationRow> LoadDemonstrations(const std::string& folder) {
  std::set<int64_t> seen;
  std::vector<DemonstrationRow> rows = LoadNewDemonstrations(folder, seen);
  if (seen.empty()) {
    throw mjp::BadInput(folder +
                        ": no demonstrations there; make them with: mjpolicy demonstrate " +
                        "--out " + folder);
  }
  return rows;
}

std::vector<DemonstrationRow> LoadNewDemonstrations(const std::string& folder,
                                                    std::set<int64_t>& seen) {
  std::vector<DemonstrationRow> rows;
  for (const auto& [stream, finished] : ReadLog(folder)) {
    if (seen.contains(stream)) continue;
    AppendRows(ReadShard(ShardPath(folder, stream), finished), rows);
    seen.insert(stream);
  }
  return rows;
}

}  // namespace mjp::app

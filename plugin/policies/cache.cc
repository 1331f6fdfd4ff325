#include "plugin/policies/cache.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/data_folders.h"
#include "base/error.h"
#include "base/fork.h"
#include "plugin/guard.h"

namespace mjp {
namespace {

namespace fs = std::filesystem;

// Whether a file can be part of a checkpoint: in a folder within one CLIP's files alone, since runs
// write others there.
bool CanCount(const fs::path& file, bool within) {
  const fs::path name = file.filename();
  if (within) return name == "config.json" || name == "vocab.json" || name == "merges.txt";
  const std::string extension = file.extension().string();
  return extension == ".json" || extension == ".safetensors" || extension == ".txt";
}

// Whether a folder within is no part of a checkpoint: a hidden one, or one of a training's.
bool IsLeftOut(const std::string& folder) {
  return folder.starts_with(".") || folder.starts_with("checkpoint") ||
         folder.starts_with("pretrained_model");
}

// Names, sizes and times of a checkpoint's files, also in folders within: changes when one is
// written anew or added. All of its own count; of a large tree below no more than kMost entries
// are seen, the nearest first.
std::string Fingerprint(const fs::path& directory) {
  constexpr int kMost = 10000, kDepth = 3;
  std::vector<std::string> files;
  std::vector<fs::path> folders = {directory};
  int entries = 0;
  for (int depth = 0; depth < kDepth && !folders.empty(); ++depth) {
    std::vector<fs::path> within;
    for (const fs::path& folder : folders) {
      if (entries > kMost) break;
      std::error_code error;
      for (fs::directory_iterator each(folder, error), end; !error && each != end;
           each.increment(error)) {
        if (depth > 0 && ++entries > kMost) break;
        std::error_code gone;  // while it is looked at
        if (CanCount(each->path(), depth > 0) && each->is_regular_file(gone)) {
          const auto time = each->last_write_time(gone).time_since_epoch().count();
          files.push_back(each->path().lexically_relative(directory).string() + " " +
                          std::to_string(each->file_size(gone)) + " " + std::to_string(time));
        } else if (each->is_directory(gone) && !IsLeftOut(each->path().filename().string())) {
          within.push_back(each->path());
        }
      }
    }
    folders = std::move(within);
  }
  std::ranges::sort(files);
  std::string all;
  for (const std::string& file : files) all += file + "\n";
  return all;
}

// What a checkpoint was read from: its files and their hashes.
std::string Identity(const Checkpoint& checkpoint) {
  std::string all;
  for (const auto& [file, sha256] : checkpoint.files) all.append(file).append(" ").append(sha256);
  return all;
}

// The checkpoint directory that is found, as it was asked for: a link in it is not followed.
fs::path FindPlace(const std::string& directory, const std::vector<fs::path>& folders) {
  std::vector<fs::path> places;
  const bool relative = fs::path(directory).is_relative();
  if (relative) {
    for (const fs::path& folder : folders) places.push_back(folder / directory);
  }
  places.emplace_back(directory);
  if (relative) {
    for (const fs::path& assets : DataFolders("assets")) places.push_back(assets / directory);
  }
  std::string searched;
  for (const fs::path& place : places) {
    std::error_code error;
    if (fs::is_directory(place, error)) return fs::absolute(place);
    searched += (searched.empty() ? "" : ", ") + place.string();
  }
  throw NoCheckpoint(directory, searched);
}

struct Entry {
  std::string directory, fingerprint;
  PolicyOptions options;
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<SharedPolicy> policy;
};

// Never destroyed: instances may outlive static objects, and a driver may be gone by then.
class Cache {
 public:
  Cache() = default;
  // What a child made by fork() begins with. Its parent's lock may be held by a thread that it has
  // not: then the parent was loading, and the child reads its checkpoints itself.
  explicit Cache(Cache& parents) : makers_(parents.makers_), owner_(parents.owner_) {
    if (!parents.mutex_.try_lock()) return;
    entries_ = parents.entries_;
    given_ = parents.given_;
  }

  const uint64_t generation = ForkGeneration();

  // `changed` becomes the directory where other files of it were given out before.
  std::shared_ptr<SharedPolicy> Get(const std::string& directory,
                                    const std::vector<fs::path>& folders, PolicyOptions options,
                                    int action_steps, std::string& changed) {
    std::lock_guard lock(mutex_);
    const bool replaced = !makers_.directory.empty();
    const fs::path place = FindPlace(replaced ? makers_.directory : directory,
                                     replaced ? std::vector<fs::path>() : folders);
    const fs::path found = fs::canonical(place);
    const std::string path = found.string(), fingerprint = Fingerprint(found);
    std::erase_if(entries_, [&](const Entry& entry) {
      return entry.directory == path && entry.fingerprint != fingerprint;
    });
    std::shared_ptr<const Checkpoint> checkpoint;
    for (const Entry& entry : entries_) {
      if (entry.directory == path) checkpoint = entry.checkpoint;
    }
    if (!checkpoint) checkpoint = makers_.load(path);
    NoteGiven(path, *checkpoint, changed);
    NoteGiven(place.string(), *checkpoint, changed);  // a link may have been moved
    options.sampler.hold_noise =
        ResolveHoldNoise(options.sampler, *checkpoint,
                         action_steps > 0 ? action_steps : checkpoint->config.DecisionSteps());
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->directory == path && entry->options == options) {
        std::rotate(entry, entry + 1, entries_.end());  // used last
        return entries_.back().policy;
      }
    }
    Trim();
    auto policy = std::make_shared<SharedPolicy>(checkpoint, options, makers_.make,
                                                 makers_.remembered_decisions);
    entries_.push_back({path, fingerprint, options, checkpoint, policy});
    return policy;
  }

  void SetMakers(PolicyMakers makers, const void* owner) {
    std::lock_guard lock(mutex_);
    entries_.clear();
    given_.clear();
    makers_ = std::move(makers);
    owner_ = owner;
  }

  // Who has put the makers in place; null: nobody who would remove them.
  const void* owner() {
    std::lock_guard lock(mutex_);
    return owner_;
  }

  int size() {
    std::lock_guard lock(mutex_);
    return static_cast<int>(entries_.size());
  }

 private:
  void NoteGiven(const std::string& place, const Checkpoint& checkpoint, std::string& changed) {
    const std::string identity = Identity(checkpoint);
    const auto [given, first] = given_.try_emplace(place, identity);
    if (given->second != identity) changed = place;
    given->second = identity;
  }

  // keeps the policies in use and a few that were used last
  void Trim() {
    constexpr int kIdle = 3;
    const auto unused = [](const Entry& entry) { return entry.policy.use_count() == 1; };
    while (std::ranges::count_if(entries_, unused) > kIdle) {
      entries_.erase(std::ranges::find_if(entries_, unused));
    }
  }

  std::mutex mutex_;
  PolicyMakers makers_;
  const void* owner_ = nullptr;
  std::vector<Entry> entries_;                // least recently used first
  std::map<std::string, std::string> given_;  // Identity of what was given out last, by place
};

Cache& TheCache() {
  static std::atomic<Cache*> cache = new Cache;
  return OfThisProcess(cache, [](Cache& parents) { return std::make_unique<Cache>(parents); });
}

}  // namespace

fs::path FindCheckpointDirectory(const std::string& directory,
                                 const std::vector<fs::path>& folders) {
  return fs::canonical(FindPlace(directory, folders));
}

std::shared_ptr<SharedPolicy> GetSharedPolicy(const std::string& directory,
                                              const std::vector<fs::path>& folders,
                                              PolicyOptions options, int action_steps) {
  std::string changed;
  auto policy = TheCache().Get(directory, folders, options, action_steps, changed);
  // outside of the cache's lock: a host's handler of warnings may wait for one of its own
  if (!changed.empty()) {
    Warn(("the checkpoint " + changed +
          " has changed on the disk: simulations made from now on run the new policy, those that "
          "there are go on with the one they began with")
             .c_str());
  }
  return policy;
}

void SetPolicyMakers(PolicyMakers makers) { TheCache().SetMakers(std::move(makers), nullptr); }

OwnPolicyMakers::~OwnPolicyMakers() {
  if (TheCache().owner() == this) TheCache().SetMakers({}, nullptr);
}

void OwnPolicyMakers::Set(PolicyMakers makers) {
  makers_ = std::move(makers);
  TheCache().SetMakers(makers_, this);
}

void OwnPolicyMakers::Use() const {
  if (TheCache().owner() != this) TheCache().SetMakers(makers_, this);
}

int CachedPolicies() { return TheCache().size(); }

}  // namespace mjp

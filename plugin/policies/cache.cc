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

// names, sizes and times of the files of a directory: changes when a checkpoint is written anew
std::string Fingerprint(const fs::path& directory) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    files.push_back(entry.path().filename().string() + " " + std::to_string(entry.file_size()) +
                    " " + std::to_string(entry.last_write_time().time_since_epoch().count()));
  }
  std::ranges::sort(files);
  std::string all;
  for (const std::string& file : files) all += file + "\n";
  return all;
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
    weights_ = parents.weights_;
  }

  const uint64_t generation = ForkGeneration();

  // `changed` becomes the directory where other weights of it were given out before.
  std::shared_ptr<SharedPolicy> Get(const std::string& directory,
                                    const std::vector<fs::path>& folders, PolicyOptions options,
                                    int action_steps, std::string& changed) {
    std::lock_guard lock(mutex_);
    const bool replaced = !makers_.directory.empty();
    const fs::path found = FindCheckpointDirectory(replaced ? makers_.directory : directory,
                                                   replaced ? std::vector<fs::path>() : folders);
    const std::string path = found.string(), fingerprint = Fingerprint(found);
    std::erase_if(entries_, [&](const Entry& entry) {
      return entry.directory == path && entry.fingerprint != fingerprint;
    });
    std::shared_ptr<const Checkpoint> checkpoint;
    for (const Entry& entry : entries_) {
      if (entry.directory == path) checkpoint = entry.checkpoint;
    }
    if (!checkpoint) checkpoint = makers_.load(path);
    const auto [given, first] = weights_.try_emplace(path, checkpoint->sha256);
    if (given->second != checkpoint->sha256) changed = path;
    given->second = checkpoint->sha256;
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
    weights_.clear();
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
  std::vector<Entry> entries_;                  // least recently used first
  std::map<std::string, std::string> weights_;  // given out last, by directory
};

Cache& TheCache() {
  static std::atomic<Cache*> cache = new Cache;
  return OfThisProcess(cache, [](Cache& parents) { return std::make_unique<Cache>(parents); });
}

}  // namespace

fs::path FindCheckpointDirectory(const std::string& directory,
                                 const std::vector<fs::path>& folders) {
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
    if (fs::is_directory(place, error)) return fs::canonical(place);
    searched += (searched.empty() ? "" : ", ") + place.string();
  }
  throw NoCheckpoint(directory, searched);
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

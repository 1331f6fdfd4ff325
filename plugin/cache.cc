#include "plugin/cache.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/data_folders.h"
#include "base/error.h"

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

// as GetSharedPolicy says
fs::path FindDirectory(const std::string& directory, const std::vector<fs::path>& folders) {
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
  explicit Cache(Cache& parents) : makers_(parents.makers_) {
    if (parents.mutex_.try_lock()) entries_ = parents.entries_;
  }

  const uint64_t generation = ForkGeneration();

  std::shared_ptr<SharedPolicy> Get(const std::string& directory,
                                    const std::vector<fs::path>& folders, PolicyOptions options,
                                    int action_steps) {
    std::lock_guard lock(mutex_);
    const bool replaced = !makers_.directory.empty();
    const fs::path found = FindDirectory(replaced ? makers_.directory : directory,
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
    options.sampler.hold_noise =
        ResolveHoldNoise(options.sampler, *checkpoint,
                         action_steps > 0 ? action_steps : checkpoint->config.n_action_steps);
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

  void SetMakers(PolicyMakers makers) {
    std::lock_guard lock(mutex_);
    entries_.clear();
    makers_ = std::move(makers);
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
  std::vector<Entry> entries_;  // least recently used first
};

Cache& TheCache() {
  static std::atomic<Cache*> cache = new Cache;
  return OfThisProcess(cache, [](Cache& parents) { return std::make_unique<Cache>(parents); });
}

}  // namespace

UnderWay& UnderWay::operator=(UnderWay&& other) noexcept {
  Leave();
  end_ = std::move(other.end_);
  generation_ = other.generation_;
  return *this;
}

// a future of std::async waits in its destructor
void UnderWay::Leave() {
  if (end_.valid() && generation_ != ForkGeneration()) {
    new std::future<void>(std::move(end_));  // the thread that would end it is the parent's
  }
  end_ = {};
}

SharedPolicy::SharedPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                           const PolicyOptions& options, Maker make, size_t remembered_decisions)
    : checkpoint_(std::move(checkpoint)),
      options_(options),
      make_(std::move(make)),
      remembered_(remembered_decisions),
      workshop_(new Workshop(remembered_decisions, false)) {}

SharedPolicy::~SharedPolicy() {
  const Workshop* workshop = workshop_;
  if (workshop->generation == ForkGeneration()) delete workshop;
}

SharedPolicy::Workshop& SharedPolicy::Here() {
  return OfThisProcess(workshop_, [this](const Workshop& parents) {
    const bool had_gpu = parents.gpu_is_lost || parents.backend == Backend::kCuda;
    return std::make_unique<Workshop>(remembered_, had_gpu);
  });
}

std::unique_ptr<Policy> SharedPolicy::Borrow() {
  Workshop& here = Here();
  if (here.gpu_is_lost) {
    throw EnvironmentError(
        "the policy runs on the GPU in the process that fork() made this one of, and CUDA does not "
        "survive fork(): start processes by spawn, or load the model in them alone");
  }
  {
    std::lock_guard lock(here.mutex);
    if (!here.idle.empty()) {
      std::unique_ptr<Policy> policy = std::move(here.idle.back());
      here.idle.pop_back();
      return policy;
    }
  }
  return make_(checkpoint_, options_);
}

void SharedPolicy::Return(std::unique_ptr<Policy> policy) {
  Workshop& here = Here();
  std::lock_guard lock(here.mutex);
  here.backend = policy->options().backend;
  here.device_ordinal = policy->device_ordinal();
  here.idle.push_back(std::move(policy));
}

void SharedPolicy::Make(Decision& decision) {
  try {
    PolicyOutput output;
    // not returned after an exception: its state is unknown then
    std::unique_ptr<Policy> policy = Borrow();
    policy->Infer(decision.input(), output);
    Return(std::move(policy));
    decision.Finish(std::move(output));
  } catch (...) {
    Here().memo.Forget(&decision);
    decision.Fail(std::current_exception());
  }
}

void SharedPolicy::Infer(const PolicyInput& input, PolicyOutput& output) {
  const auto [decision, added] = Here().memo.FindOrAdd(input);
  if (added) Make(*decision);
  output = decision->Wait();
}

UnderWay SharedPolicy::Prefetch(const PolicyInput& input) {
  DecisionMemo& memo = Here().memo;
  const auto [decision, added] = memo.FindOrAdd(input);
  if (!added || memo.capacity() == 0) return {};
  try {
    return UnderWay(
        std::async(std::launch::async,
                   [self = shared_from_this(), decision = decision] { self->Make(*decision); }));
  } catch (const std::system_error&) {
    Make(*decision);  // no thread to be had: now, then
    return {};
  }
}

std::string SharedPolicy::Describe() {
  std::unique_ptr<Policy> policy = Borrow();
  std::string description = policy->Description();
  Return(std::move(policy));
  return description;
}

Backend SharedPolicy::backend() {
  Workshop& here = Here();
  {
    std::lock_guard lock(here.mutex);
    if (here.backend) return *here.backend;
  }
  Describe();
  std::lock_guard lock(here.mutex);
  return *here.backend;
}

int SharedPolicy::device_ordinal() {
  if (backend() != Backend::kCuda) return -1;
  Workshop& here = Here();
  std::lock_guard lock(here.mutex);
  return here.device_ordinal;
}

std::shared_ptr<SharedPolicy> GetSharedPolicy(const std::string& directory,
                                              const std::vector<fs::path>& folders,
                                              PolicyOptions options, int action_steps) {
  return TheCache().Get(directory, folders, options, action_steps);
}

void SetPolicyMakers(PolicyMakers makers) { TheCache().SetMakers(std::move(makers)); }

int CachedPolicies() { return TheCache().size(); }

}  // namespace mjp

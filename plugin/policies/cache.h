#ifndef PLUGIN_POLICIES_CACHE_H_
#define PLUGIN_POLICIES_CACHE_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "plugin/policies/shared_policy.h"

// Policies of this process. They outlive the plugin's instances, because a host makes and destroys
// instances at every load, reset of the window and copy of a simulation.

namespace mjp {

// There is no checkpoint directory where one was looked for.
class NoCheckpoint : public Error {
 public:
  NoCheckpoint(const std::string& directory, const std::string& searched)
      : Error(ExitCode::kBadInput, "there is no checkpoint directory " + searched),
        directory_(directory) {}
  const std::string& directory() const { return directory_; }  // as it was asked for

 private:
  std::string directory_;
};

// The checkpoint directory that `directory` means: a relative one is looked for in each of
// `folders`, in the working directory, then among the project's assets. Throws NoCheckpoint.
std::filesystem::path FindCheckpointDirectory(const std::string& directory,
                                              const std::vector<std::filesystem::path>& folders);

// The policy of the checkpoint directory that FindCheckpointDirectory finds with these options,
// loaded once per process and again when its files have changed; other files than were given out
// before are a warning of the engine, once for each change, also where a link leads elsewhere now.
// Throws as it does, and Error as LoadCheckpoint does. `action_steps`: executed per decision, 0 as
// the checkpoint says; options.sampler.hold_noise is resolved for it.
std::shared_ptr<SharedPolicy> GetSharedPolicy(const std::string& directory,
                                              const std::vector<std::filesystem::path>& folders,
                                              PolicyOptions options, int action_steps);

// How checkpoints and policies are made; tests and viewers put their own in place.
struct PolicyMakers {
  std::string directory;  // of the checkpoint, in place of the one that models name; empty: none
  std::function<std::shared_ptr<const Checkpoint>(const std::string& directory)> load =
      LoadCheckpoint;
  SharedPolicy::Maker make = Policy::Create;
  size_t remembered_decisions = 8;  // of each policy; 0: every call makes a decision
};

// Empties the cache and makes everything by `makers` from now on.
void SetPolicyMakers(PolicyMakers makers);

// Makers of one of several users of the process, each of whom puts its own in place before it makes
// data.
class OwnPolicyMakers {
 public:
  OwnPolicyMakers() = default;
  ~OwnPolicyMakers();  // removes them where they are in place
  OwnPolicyMakers(const OwnPolicyMakers&) = delete;
  OwnPolicyMakers& operator=(const OwnPolicyMakers&) = delete;

  // Begins with `makers`, as SetPolicyMakers does.
  void Set(PolicyMakers makers);
  // Puts them in place where another's are.
  void Use() const;

 private:
  PolicyMakers makers_;
};

// Policies in the cache, for tests and statistics.
int CachedPolicies();

}  // namespace mjp

#endif  // PLUGIN_POLICIES_CACHE_H_

#ifndef POLICY_CHECKPOINT_CHECKPOINT_FILES_H_
#define POLICY_CHECKPOINT_CHECKPOINT_FILES_H_

#include <map>
#include <string>

#include "base/json.h"
#include "policy/checkpoint/safetensors.h"

namespace mjp {

// The directory of a checkpoint: reads its files and keeps the hash of each as it was read, so that
// the identity of the checkpoint is that of the bytes in use.
class CheckpointFiles {
 public:
  explicit CheckpointFiles(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  bool Has(const std::string& name) const;

  // Each throws Error as ReadJson, ReadFile and SafetensorsFile::Read do.
  Json ReadJson(const std::string& name, const JsonLimits& limits = {});
  std::string ReadText(const std::string& name, size_t limit);
  SafetensorsFile ReadTensors(const std::string& name, uint64_t limit,
                              const SafetensorsFile::HeaderCheck& check = {});

  // Name -> SHA-256 of every file read so far.
  const std::map<std::string, std::string>& hashes() const { return hashes_; }

 private:
  std::string directory_;
  std::map<std::string, std::string> hashes_;
};

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_CHECKPOINT_FILES_H_

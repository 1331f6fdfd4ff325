#include "policy/checkpoint/checkpoint_files.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/sha256.h"

namespace mjp {

bool CheckpointFiles::Has(const std::string& name) const {
  std::error_code error;  // a link that leads nowhere is there, so that reading it is an error
  return std::filesystem::exists(std::filesystem::symlink_status(PathOf(name), error));
}

Json CheckpointFiles::ReadJson(const std::string& name, const JsonLimits& limits) {
  const std::vector<uint8_t> bytes = ReadFile(PathOf(name), limits.bytes);
  hashes_[name] = Sha256(bytes);
  return ParseJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, PathOf(name),
                   limits);
}

std::string CheckpointFiles::ReadText(const std::string& name, size_t limit) {
  const std::vector<uint8_t> bytes = ReadFile(PathOf(name), limit);
  hashes_[name] = Sha256(bytes);
  return {bytes.begin(), bytes.end()};
}

SafetensorsFile CheckpointFiles::ReadTensors(const std::string& name, uint64_t limit,
                                             const SafetensorsFile::HeaderCheck& check) {
  SafetensorsFile file = SafetensorsFile::Read(PathOf(name), limit, check);
  hashes_[name] = Sha256(file.bytes());
  return file;
}

}  // namespace mjp

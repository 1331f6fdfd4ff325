#ifndef POLICY_FILE_H_
#define POLICY_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dp {

// Reads a regular file whole into own memory. Throws Error if it is missing, not a regular file,
// larger than `limit` bytes, or changes while it is read.
std::vector<uint8_t> ReadFile(const std::string& path, uint64_t limit);

// Replaces `path` so that readers, and a crash, see either the old file or all of the new one
// (temporary file, fsync, rename). Throws Error if that fails; no partial file remains.
void WriteFileAtomically(const std::string& path, std::span<const uint8_t> bytes);

}  // namespace dp

#endif  // POLICY_FILE_H_

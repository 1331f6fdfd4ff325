#ifndef POLICY_CHECKPOINT_SAFETENSORS_WRITER_H_
#define POLICY_CHECKPOINT_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "policy/checkpoint/network.h"

namespace mjp {

// Collects tensors and writes them as one safetensors file, sorted by name: the same tensors give
// the same bytes, in whatever order they were added.
class SafetensorsWriter {
 public:
  // Each throws Error if the name was added before, or the size does not fit the shape.
  void AddFloats(const std::string& name, const std::vector<int64_t>& shape,
                 std::span<const float> values);  // F32
  void AddHalves(const std::string& name, const std::vector<int64_t>& shape,
                 std::span<const float> values);  // F16, to nearest even
  void AddIntegers(const std::string& name, const std::vector<int64_t>& shape,
                   std::span<const int64_t> values);  // I64
  void AddBytes(const std::string& name, const std::vector<int64_t>& shape,
                std::span<const uint8_t> values);  // U8

  // A text of the header that is no tensor's; replaces one of that key.
  void SetMetadata(const std::string& key, const std::string& text) { metadata_[key] = text; }

  std::vector<uint8_t> Serialize() const;
  // Replaces `path` atomically. Throws Error if it cannot be written.
  void Write(const std::string& path) const;

 private:
  struct Entry {
    std::string dtype;
    std::vector<int64_t> shape;
    std::vector<uint8_t> data;
  };
  template <class T>
  void Add(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape,
           std::span<const T> values);

  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_SAFETENSORS_WRITER_H_

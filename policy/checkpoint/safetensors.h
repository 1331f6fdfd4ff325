#ifndef POLICY_CHECKPOINT_SAFETENSORS_H_
#define POLICY_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/checkpoint/network.h"

// A strict reader of safetensors files: 8 bytes N, N bytes of JSON, tensor data. Files are not
// trusted: sizes are checked before they are used, and nothing is allocated by what they claim.

namespace mjp {

// One tensor of a file; its data is bytes begin ... end of the file's data part.
struct TensorEntry {
  std::string name;
  std::string dtype;  // as in the file: "F32", "F16", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;

  uint64_t ElementCount() const;
};

class SafetensorsFile {
 public:
  // Takes over the bytes of a file; `origin` names it in errors. Throws Error for anything that
  // the format forbids, holes, overlaps and trailing bytes included.
  static SafetensorsFile Parse(std::vector<uint8_t> bytes, const std::string& origin);
  // What is to be known of a file before its data is read: its tensors() and metadata() are there,
  // its data is not.
  using HeaderCheck = std::function<void(const SafetensorsFile& header)>;

  // Reads a regular file of at most `limit` bytes whole. The header is judged, by the format's
  // rules and by `check`, before the data is read or has memory. Throws Error as Parse does.
  static SafetensorsFile Read(const std::string& path, uint64_t limit = kMaxFile,
                              const HeaderCheck& check = {});
  // Reads the header alone; the tensors have no data.
  static SafetensorsFile ReadHeader(const std::string& path);

  static constexpr uint64_t kMaxFile = uint64_t{64} << 30;

  const std::string& origin() const { return origin_; }
  std::span<const uint8_t> bytes() const { return bytes_; }
  // In the order of their data.
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // The tensor called `name`, or null.
  const TensorEntry* Find(std::string_view name) const;
  // Raw little-endian data of one of this file's tensors; not aligned.
  std::span<const uint8_t> Data(const TensorEntry& entry) const;

  // Values of tensor `name`, converted. Throws Error if it is missing or of another type.
  Tensor Floats(std::string_view name) const;                  // F32, F16, BF16, F64
  std::vector<int64_t> Integers(std::string_view name) const;  // I64
  std::vector<uint8_t> Bytes(std::string_view name) const;     // U8

 private:
  // Takes over the file's first 8 bytes and its header, and checks them against its size.
  static SafetensorsFile FromHeader(std::vector<uint8_t> bytes, uint64_t size,
                                    const std::string& origin);
  const TensorEntry& At(std::string_view name) const;
  // The tensor's data, which must be of `dtype`.
  std::span<const uint8_t> DataOf(std::string_view name, std::string_view dtype) const;

  std::string origin_;
  std::vector<uint8_t> bytes_;
  uint64_t data_begin_ = 0;
  std::vector<TensorEntry> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_SAFETENSORS_H_

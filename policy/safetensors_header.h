#ifndef POLICY_SAFETENSORS_HEADER_H_
#define POLICY_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/safetensors.h"

namespace dp {

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

// Parses the JSON header of a file with `data_size` bytes of tensor data and checks that the
// tensors cover these exactly. Throws Error "origin: what".
SafetensorsHeader ParseSafetensorsHeader(std::string_view text, uint64_t data_size,
                                         const std::string& origin);

// Bits of one element of a type of the format, or 0 if there is no such type.
int DtypeBits(std::string_view dtype);

}  // namespace dp

#endif  // POLICY_SAFETENSORS_HEADER_H_

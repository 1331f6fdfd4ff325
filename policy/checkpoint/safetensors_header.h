#ifndef POLICY_CHECKPOINT_SAFETENSORS_HEADER_H_
#define POLICY_CHECKPOINT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/checkpoint/safetensors.h"

namespace mjp {

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

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_SAFETENSORS_HEADER_H_

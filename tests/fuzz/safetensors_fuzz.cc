#include <cstddef>
#include <cstdint>
#include <exception>

#include "base/error.h"
#include "policy/checkpoint/safetensors.h"

// Any bytes either parse or throw mjp::Error, and what parses can be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = mjp::SafetensorsFile::Parse({data, data + size}, "fuzz");
    for (const mjp::TensorEntry& tensor : file.tensors()) {
      try {
        if (file.Floats(tensor.name).data.size() != tensor.ElementCount()) std::terminate();
      } catch (const mjp::Error&) {
      }
    }
  } catch (const mjp::Error&) {
  }
  return 0;
}

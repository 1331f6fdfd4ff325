#include <cstddef>
#include <cstdint>
#include <exception>

#include "kernels/error.h"
#include "policy/safetensors.h"

// Any bytes either parse or throw dp::Error, and what parses can be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = dp::SafetensorsFile::Parse({data, data + size}, "fuzz");
    for (const dp::TensorEntry& tensor : file.tensors()) {
      try {
        if (file.Floats(tensor.name).data.size() != tensor.ElementCount()) std::terminate();
      } catch (const dp::Error&) {
      }
    }
  } catch (const dp::Error&) {
  }
  return 0;
}

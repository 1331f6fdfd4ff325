#include <cstddef>
#include <cstdint>
#include <exception>

#include "base/error.h"
#include "base/npy.h"

// Any bytes are an array whose size fits its shape, or refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const mjp::app::NpyArray array = mjp::app::ParseNpy({data, size}, "fuzz");
    int64_t elements = 1;
    for (const int64_t d : array.shape) elements *= d;
    if (elements != array.size()) std::terminate();
  } catch (const mjp::Error&) {
  }
  return 0;
}

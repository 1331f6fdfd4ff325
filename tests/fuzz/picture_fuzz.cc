#include <cstddef>
#include <cstdint>
#include <exception>

#include "image/data/pictures.h"
#include "kernels/error.h"

// Any bytes are a picture of the asked size, or refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    if (dp::ParsePicture({data, size}, "fuzz", 4, 3).size() != 4 * 4 * 3) std::terminate();
  } catch (const dp::Error&) {
  }
  return 0;
}

#include <cstddef>
#include <cstdint>
#include <exception>

#include "base/error.h"
#include "image_diffusion/data/pictures.h"

// Any bytes are a picture of the asked size, or refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    if (mjp::ParsePicture({data, size}, "fuzz", 4, 3).size() != 4 * 4 * 3) std::terminate();
  } catch (const mjp::Error&) {
  }
  return 0;
}

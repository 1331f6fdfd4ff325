#include <cstddef>
#include <cstdint>
#include <exception>

#include "image/data/pictures.h"
#include "kernels/error.h"

// Any bytes are an IDX file whose data fits its shape, or refused; and the same bytes are records
// of CIFAR-10, or refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const dp::IdxFile idx = dp::ParseIdx({data, size}, "fuzz");
    size_t elements = 1;
    for (const int extent : idx.shape) elements *= static_cast<size_t>(extent);
    if (elements != idx.data.size()) std::terminate();
  } catch (const dp::Error&) {
  }
  try {
    dp::PictureSet pictures{.size = 2, .channels = 3};
    dp::ParseCifar10({data, size}, "fuzz", pictures);
    if (pictures.pixels.size() != pictures.labels.size() * 12) std::terminate();
  } catch (const dp::Error&) {
  }
  return 0;
}

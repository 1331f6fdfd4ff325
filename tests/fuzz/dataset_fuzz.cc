#include <cstddef>
#include <cstdint>
#include <exception>

#include "base/error.h"
#include "image_diffusion/data/pictures.h"

// Any bytes are an IDX file whose data fits its shape, or refused; and the same bytes are records
// of CIFAR-10, or refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const mjp::IdxFile idx = mjp::ParseIdx({data, size}, "fuzz");
    size_t elements = 1;
    for (const int extent : idx.shape) elements *= static_cast<size_t>(extent);
    if (elements != idx.data.size()) std::terminate();
  } catch (const mjp::Error&) {
  }
  try {
    mjp::PictureSet pictures{.size = 2, .channels = 3};
    mjp::ParseCifar10({data, size}, "fuzz", pictures);
    if (pictures.pixels.size() != pictures.labels.size() * 12) std::terminate();
  } catch (const mjp::Error&) {
  }
  return 0;
}

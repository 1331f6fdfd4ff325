#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "base/error.h"
#include "image_diffusion/data/pictures.h"

// Any bytes are an IDX file whose data fits its shape, or refused; and the same bytes are records
// of CIFAR-10, or refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    mjp::ByteStream bytes({data, size}, "fuzz");
    size_t elements = 1;
    for (const int extent : mjp::ReadIdxShape(bytes)) elements *= static_cast<size_t>(extent);
    std::vector<uint8_t> row(std::min<size_t>(elements, 1 << 16));
    for (size_t left = elements; left > 0;) {
      const size_t count = std::min(left, row.size());
      bytes.Read({row.data(), count});
      left -= count;
    }
    bytes.CheckEnd();
    if (bytes.size() && *bytes.size() < elements) std::terminate();
  } catch (const mjp::Error&) {
  }
  try {
    constexpr size_t kRecord = 3073;
    const auto records = static_cast<int64_t>(std::max<size_t>(size / kRecord, 1));
    mjp::PictureSet pictures{.size = 2, .channels = 3};
    mjp::ByteStream bytes({data, size}, "fuzz");
    mjp::ReadCifar10(bytes, records, pictures);
    if (pictures.count() != records) std::terminate();
    if (pictures.pixels.size() != pictures.labels.size() * 12) std::terminate();
  } catch (const mjp::Error&) {
  }
  return 0;
}

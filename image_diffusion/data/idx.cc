#include "base/error.h"
#include "image_diffusion/data/pictures.h"

namespace mjp {

IdxFile ParseIdx(std::span<const uint8_t> bytes, const std::string& origin) {
  constexpr size_t kLimit = size_t{1} << 30;
  constexpr uint8_t kUnsignedBytes = 8;
  constexpr int kMaxAxes = 4;
  const std::vector<uint8_t> file = Inflate(bytes, origin, kLimit);
  const auto bad = [&](const std::string& what) {
    return BadInput(origin + ": " + what + "; an IDX file of unsigned bytes is expected");
  };
  if (file.size() < 4 || file[0] != 0 || file[1] != 0) throw bad("does not begin as an IDX file");
  if (file[2] != kUnsignedBytes) throw bad("holds type " + std::to_string(file[2]));
  const int axes = file[3];
  if (axes < 1 || axes > kMaxAxes) throw bad("has " + std::to_string(axes) + " axes");
  const size_t header = 4 + size_t{4} * axes;
  if (file.size() < header) throw bad("ends within its header");
  IdxFile idx;
  uint64_t size = 1;
  for (int i = 0; i < axes; ++i) {
    const uint8_t* at = file.data() + 4 + 4 * i;
    const uint32_t extent = uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | at[2] << 8 | at[3];
    if (extent == 0 || extent > kLimit || (size *= extent) > kLimit) {
      throw bad("has an axis of " + std::to_string(extent));
    }
    idx.shape.push_back(static_cast<int>(extent));
  }
  if (file.size() - header != size) {
    throw bad("has " + std::to_string(file.size() - header) + " bytes of data, its header says " +
              std::to_string(size));
  }
  idx.data.assign(file.begin() + static_cast<ptrdiff_t>(header), file.end());
  return idx;
}

}  // namespace mjp

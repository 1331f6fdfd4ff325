#include "base/error.h"
#include "image_diffusion/data/pictures.h"

namespace mjp {

std::vector<int> ReadIdxShape(ByteStream& bytes) {
  constexpr uint64_t kLimit = uint64_t{1} << 30;
  constexpr uint8_t kUnsignedBytes = 8;
  constexpr int kMaxAxes = 4;
  const auto bad = [&](const std::string& what) {
    return BadInput(bytes.origin() + ": " + what +
                    "; an IDX file of unsigned bytes is expected: download it again");
  };
  const auto read = [&](std::span<uint8_t> out, const char* what) {
    if (bytes.ReadUpTo(out) < out.size()) throw bad(what);
  };
  uint8_t magic[4] = {};
  read(magic, "does not begin as an IDX file");
  if (magic[0] != 0 || magic[1] != 0) throw bad("does not begin as an IDX file");
  if (magic[2] != kUnsignedBytes) throw bad("holds type " + std::to_string(magic[2]));
  const int axes = magic[3];
  if (axes < 1 || axes > kMaxAxes) throw bad("has " + std::to_string(axes) + " axes");
  std::vector<int> shape;
  uint64_t size = 1;
  for (int i = 0; i < axes; ++i) {
    uint8_t at[4] = {};
    read(at, "ends within its header");
    const uint32_t extent = uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | at[2] << 8 | at[3];
    if (extent == 0 || extent > kLimit || (size *= extent) > kLimit) {
      throw bad("has an axis of " + std::to_string(extent));
    }
    shape.push_back(static_cast<int>(extent));
  }
  const uint64_t header = 4 + uint64_t{4} * axes;
  if (bytes.size() && *bytes.size() - header != size) {
    throw bad("has " + std::to_string(*bytes.size() - header) + " bytes of data, its header says " +
              std::to_string(size));
  }
  return shape;
}

}  // namespace mjp

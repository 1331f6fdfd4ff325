#include "base/error.h"
#include "image_diffusion/data/pictures.h"

namespace mjp {

void ReadCifar10(ByteStream& bytes, int64_t records, PictureSet& pictures) {
  constexpr int kSize = 32, kClasses = 10;
  constexpr size_t kPlane = size_t{kSize} * kSize, kRecord = 1 + 3 * kPlane;
  if (bytes.size() && *bytes.size() != records * kRecord) {
    throw BadInput(bytes.origin() + ": has " + std::to_string(*bytes.size()) + " bytes, not the " +
                   std::to_string(records * kRecord) + " of " + std::to_string(records) +
                   " records; the binary version of CIFAR-10 is expected, not the Python one");
  }
  std::vector<uint8_t> record(kRecord), rgb(3 * kPlane);
  for (int64_t r = 0; r < records; ++r) {
    bytes.Read(record);
    if (record[0] >= kClasses) {
      throw BadInput(bytes.origin() + ": record " + std::to_string(r) + " has class " +
                     std::to_string(record[0]) + " of 10; download the file again");
    }
    for (size_t i = 0; i < kPlane; ++i)
      for (size_t c = 0; c < 3; ++c) rgb[i * 3 + c] = record[1 + c * kPlane + i];
    pictures.Add(FitPicture(rgb.data(), kSize, kSize, 3, pictures.size, pictures.channels),
                 record[0]);
  }
  bytes.CheckEnd();
}

}  // namespace mjp

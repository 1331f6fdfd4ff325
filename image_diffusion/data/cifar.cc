#include "base/error.h"
#include "image_diffusion/data/pictures.h"

namespace mjp {

void ParseCifar10(std::span<const uint8_t> bytes, const std::string& origin, PictureSet& pictures) {
  constexpr int kSize = 32, kClasses = 10;
  constexpr size_t kPlane = size_t{kSize} * kSize, kRecord = 1 + 3 * kPlane;
  constexpr size_t kLimit = 100000 * kRecord;
  const std::vector<uint8_t> file = Inflate(bytes, origin, kLimit);
  if (file.empty() || file.size() % kRecord != 0) {
    throw BadInput(origin + ": " + std::to_string(file.size()) +
                   " bytes are not whole records of " + std::to_string(kRecord) +
                   "; the binary version of CIFAR-10 is expected, not the Python one");
  }
  std::vector<uint8_t> rgb(3 * kPlane);
  for (size_t at = 0; at < file.size(); at += kRecord) {
    if (file[at] >= kClasses) {
      throw BadInput(origin + ": record " + std::to_string(at / kRecord) + " has class " +
                     std::to_string(file[at]) + " of 10; download the file again");
    }
    for (size_t i = 0; i < kPlane; ++i)
      for (size_t c = 0; c < 3; ++c) rgb[i * 3 + c] = file[at + 1 + c * kPlane + i];
    const std::vector<uint8_t> fitted =
        FitPicture(rgb.data(), kSize, kSize, 3, pictures.size, pictures.channels);
    pictures.pixels.insert(pictures.pixels.end(), fitted.begin(), fitted.end());
    pictures.labels.push_back(file[at]);
  }
}

}  // namespace mjp

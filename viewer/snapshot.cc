#include "viewer/snapshot.h"

#include "kernels/rasterise.h"

namespace pusht {

std::vector<uint8_t> PicturesOf(const DecisionRecord& record) {
  if (record.scenes.empty()) return record.frames;
  std::vector<uint8_t> pictures(record.scenes.size() * dp::kPictureBytes);
  dp::RasteriseCpu(record.scenes.data(), static_cast<int>(record.scenes.size()), pictures.data());
  return pictures;
}

}  // namespace pusht

#include "viewer/snapshot.h"

#include "tasks/pusht/pictures/rasterise.h"

namespace mjp::app {

std::vector<uint8_t> PicturesOf(const DecisionRecord& record) {
  if (record.scenes.empty()) return record.frames;
  std::vector<uint8_t> pictures(record.scenes.size() * mjp::kPictureBytes);
  mjp::RasteriseCpu(record.scenes.data(), static_cast<int>(record.scenes.size()), pictures.data());
  return pictures;
}

}  // namespace mjp::app

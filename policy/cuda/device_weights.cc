#include "policy/cuda/device_weights.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "policy/cuda/shared_weights.h"
#include "policy/unet/unet_model.h"

namespace mjp {

DeviceWeights::DeviceWeights(std::shared_ptr<const Checkpoint> checkpoint, Format format,
                             bool packed)
    : checkpoint_(std::move(checkpoint)), packed_(packed) {
  Load(format);
  arena_.Seal();
  Load(format);
  PlantFault();
}

// In a build for tests, flips the highest bit of the exponent of the 16-bit word at
// MJPOLICY_TEST_FLIP_WEIGHT of the way through the weights: what a load-time check must find.
void DeviceWeights::PlantFault() {
#ifdef MJPOLICY_TEST_SEAMS
  const char* place = std::getenv(kTestFaultVariable);
  if (place == nullptr) return;
  const size_t words = arena_.bytes() / sizeof(uint16_t);
  const auto word = static_cast<size_t>(std::strtod(place, nullptr) * static_cast<double>(words));
  uint16_t* const device = arena_.Base<uint16_t>() + std::min(word, words - 1);
  uint16_t value = 0;
  CheckCuda(cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost), "planted fault");
  value ^= 0x4000;
  CheckCuda(cudaMemcpy(device, &value, sizeof(value), cudaMemcpyHostToDevice), "planted fault");
#endif
}

void DeviceWeights::Load(Format format) {
  LayerLoader loader(arena_, format);
  if (packed_) {
    norm_conv_unet_ = LoadNormConvUnet(loader, *checkpoint_, arena_.measuring());
  } else {
    unet_ = LoadDeviceUnet(loader, *checkpoint_, arena_.measuring());
  }
  encoders_.clear();
  const UnetModel& network = UnetOf(*checkpoint_);
  for (size_t i = 0; i < network.encoders.size(); ++i) {
    const CameraFeature& camera = checkpoint_->config.cameras[i];
    encoders_.push_back(LoadDeviceEncoder(loader, network.config.encoder, network.encoders[i],
                                          camera.height, camera.width));
  }
  picture_tables_ = loader.PictureTables(checkpoint_->stats.cameras);
}

std::shared_ptr<const DeviceWeights> DeviceWeights::Get(
    std::shared_ptr<const Checkpoint> checkpoint, Format format, bool packed) {
  return SharedWeights<DeviceWeights>(std::move(checkpoint), format, packed);
}

}  // namespace mjp

#include "viewer/diagnostics/keypoints.h"

namespace mjp::app {

bool KeypointFinder::Has(const mjp::Checkpoint& checkpoint) {
  const mjp::UnetModel* network = mjp::FindUnet(checkpoint);
  return network != nullptr && !network->config.cameras.empty() &&
         network->config.encoder.pool != mjp::PoolKind::kAverage;
}

KeypointFinder::KeypointFinder(std::shared_ptr<const mjp::Checkpoint> checkpoint)
    : checkpoint_(std::move(checkpoint)),
      network_(mjp::UnetOf(*checkpoint_)),
      encoder_(mjp::cpu::PackEncoder(network_.config.encoder, network_.encoders.front()),
               network_.config.encoder, network_.config.cameras.front(),
               checkpoint_->stats.cameras.front(), 1, pool_),
      features_(network_.config.encoder.feature_dim) {}

void KeypointFinder::AddPlace(float x, float y, std::vector<float>& points) const {
  const mjp::EncoderConfig& config = network_.config.encoder;
  const mjp::CameraFeature& camera = network_.config.cameras.front();
  const auto along = [](float place, int whole, int resized, int seen) {
    const float full = static_cast<float>(resized > 0 ? resized : whole);
    const float pixel = (full - seen) / 2 + (place + 1) / 2 * (seen - 1);  // the centre crop
    return pixel * whole / full;
  };
  const mjp::cpu::Features& seen = encoder_.input();
  points.push_back(along(x, camera.width, config.resize_width, seen.width));
  points.push_back(along(y, camera.height, config.resize_height, seen.height));
}

void KeypointFinder::AddSoftmaxPoints(std::vector<float>& points) const {
  const mjp::cpu::AlignedBuffer& keypoints = encoder_.keypoints();
  for (int k = 0; k < network_.config.encoder.pool_channels; ++k) {
    AddPlace(keypoints.data()[2 * k], keypoints.data()[2 * k + 1], points);
  }
}

// The maps lie as (cells, channels), rows of cells from the top.
void KeypointFinder::AddMapCentres(std::vector<float>& points) const {
  const int channels = network_.config.encoder.pool_channels;
  const int height = encoder_.feature_map().height, width = encoder_.feature_map().width;
  const float* maps = encoder_.keypoints().data();
  for (int k = 0; k < channels; ++k) {
    float sum = 0, x = 0, y = 0;
    for (int cell = 0; cell < height * width; ++cell) {
      const int row = cell / width, column = cell % width;
      const float value = maps[cell * channels + k];
      sum += value;
      x += value * (2 * (column + 0.5f) / width - 1);
      y += value * (2 * (row + 0.5f) / height - 1);
    }
    if (sum > 0) {
      AddPlace(x / sum, y / sum, points);
    } else {
      points.insert(points.end(), 2, -1.0f);  // a silent map looks nowhere
    }
  }
}

std::vector<float> KeypointFinder::Find(const std::vector<uint8_t>& frames) {
  const mjp::CameraFeature& camera = network_.config.cameras.front();
  const size_t size = size_t{3} * camera.width * camera.height;
  std::vector<float> points;
  for (size_t at = 0; at + size <= frames.size(); at += size) {
    encoder_.Prepare(&frames[at], static_cast<int64_t>(size), 1);
    encoder_.Encode(1, features_.data());
    if (network_.config.encoder.pool == mjp::PoolKind::kSpatialSoftmax) {
      AddSoftmaxPoints(points);
    } else {
      AddMapCentres(points);
    }
  }
  return points;
}

}  // namespace mjp::app

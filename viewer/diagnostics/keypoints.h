#ifndef VIEWER_DIAGNOSTICS_KEYPOINTS_H_
#define VIEWER_DIAGNOSTICS_KEYPOINTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/thread_pool.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/cpu/encoder.h"
#include "policy/unet/unet_model.h"

namespace mjp::app {

// Where a policy's picture encoder looks: the keypoints of a spatial softmax; for an encoder that
// flattens its last maps, the centre of each map's activation. Runs the encoder once more, on the
// CPU, so that decisions stay as fast as they are. Not thread-safe.
class KeypointFinder {
 public:
  // For the first camera of `checkpoint`, which Has() such points.
  explicit KeypointFinder(std::shared_ptr<const mjp::Checkpoint> checkpoint);

  // Whether the policy's encoder has such points: a camera, and maps that keep places.
  static bool Has(const mjp::Checkpoint& checkpoint);

  // The points of `frames` (n, height, width, 3) as (n, points, 2): x, y in pixels of the picture.
  std::vector<float> Find(const std::vector<uint8_t>& frames);

 private:
  void AddSoftmaxPoints(std::vector<float>& points) const;
  void AddMapCentres(std::vector<float>& points) const;
  // A place from -1 to 1 across what the encoder sees, as pixels of the whole picture.
  void AddPlace(float x, float y, std::vector<float>& points) const;

  std::shared_ptr<const mjp::Checkpoint> checkpoint_;
  const mjp::UnetModel& network_;
  mjp::cpu::ThreadPool pool_{1};
  mjp::cpu::Encoder encoder_;
  std::vector<float> features_;
};

}  // namespace mjp::app

#endif  // VIEWER_DIAGNOSTICS_KEYPOINTS_H_

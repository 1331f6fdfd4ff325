#ifndef APPS_TRAIN_DATA_DATASET_H_
#define APPS_TRAIN_DATA_DATASET_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "tasks/pusht/planner/demonstration_stream.h"

namespace mjp::app {

inline constexpr int kStateWidth = 5;     // agent x, y, block x, y, angle
inline constexpr int kTrainHorizon = 16;  // a_{t-1}, then 15 planned targets
static_assert(kTrainHorizon == 1 + kDemonstratedTargets);

// Rows of late decisions: the first actions from the state on are executed whatever is decided.
inline constexpr int kLateSteps = 4;

// A batch of observations with their labels, raw units.
struct Batch {
  at::Tensor states;   // (B, 2, 5), oldest first
  at::Tensor actions;  // (B, 16, 2)
  at::Tensor late;     // (B), bool
};

// World pixels onto +-1, as the checkpoint's normalisation does.
at::Tensor NormalisePixels(const at::Tensor& pixels);

// Rows of demonstrations, all on the training device; grows up to a fixed capacity.
class Dataset {
 public:
  Dataset(int64_t capacity, const at::Device& device);

  // Throws Error beyond the capacity or for rows that are not finite.
  void Append(std::span<const DemonstrationRow> rows, bool late = false);
  int64_t size() const { return size_; }

  // Draws `count` rows, each alike, from the device's generator; with `reflect`, half of them are
  // mirrored about the diagonal that maps the goal onto itself. A CUDA graph may replay it.
  Batch Sample(int64_t count, bool reflect) const;

 private:
  at::Tensor rows_;       // (capacity, kDemonstrationColumns)
  at::Tensor late_;       // (capacity), bool
  at::Tensor row_count_;  // scalar on the device, float64
  int64_t size_ = 0;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_DATA_DATASET_H_

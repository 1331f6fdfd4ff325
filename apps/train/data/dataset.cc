#include "apps/train/data/dataset.h"

#include <numbers>
#include <string>

#include "base/error.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {
namespace {

// (x, y) -> (512 - y, 512 - x) for the points (…, 2)
at::Tensor ReflectPoints(const at::Tensor& points) { return kWorldSize - points.flip(-1); }

at::Tensor ReflectStates(const at::Tensor& states) {
  return at::cat({ReflectPoints(states.narrow(-1, 0, 2)), ReflectPoints(states.narrow(-1, 2, 2)),
                  std::numbers::pi / 2 - states.narrow(-1, 4, 1)},
                 -1);
}

}  // namespace

at::Tensor NormalisePixels(const at::Tensor& pixels) { return pixels / (kWorldSize / 2) - 1; }

Dataset::Dataset(int64_t capacity, const at::Device& device)
    : rows_(at::empty({capacity, kDemonstrationColumns},
                      at::TensorOptions(at::kFloat).device(device))),
      late_(at::empty({capacity}, at::TensorOptions(at::kBool).device(device))),
      row_count_(at::zeros({}, at::TensorOptions(at::kDouble).device(device))) {}

void Dataset::Append(std::span<const DemonstrationRow> rows, bool late) {
  if (rows.empty()) return;
  const auto count = static_cast<int64_t>(rows.size());
  if (size_ + count > rows_.size(0)) {
    throw mjp::BadInput("demonstrations: more than the " + std::to_string(rows_.size(0)) +
                        " rows there is room for");
  }
  const at::Tensor host =
      at::from_blob(const_cast<DemonstrationRow*>(rows.data()), {count, kDemonstrationColumns});
  if (!host.isfinite().all().item<bool>()) {
    throw mjp::BadInput("demonstrations: a row is not finite; make them again");
  }
  rows_.narrow(0, size_, count).copy_(host);
  late_.narrow(0, size_, count).fill_(late);
  size_ += count;
  row_count_.fill_(static_cast<double>(size_));
}

Batch Dataset::Sample(int64_t count, bool reflect) const {
  // the count is read on the device, so that a captured graph sees rows added later
  const at::Tensor index = (at::rand({count}, row_count_.options()) * row_count_).to(at::kLong);
  const at::Tensor rows = rows_.index_select(0, index);
  Batch batch{rows.narrow(1, 0, 2 * kStateWidth).view({count, 2, kStateWidth}),
              rows.narrow(1, 2 * kStateWidth, 2 * kTrainHorizon).view({count, kTrainHorizon, 2}),
              late_.index_select(0, index)};
  if (!reflect) return batch;
  const at::Tensor mirrored = at::rand({count, 1, 1}, rows.options()) < 0.5;
  return {at::where(mirrored, ReflectStates(batch.states), batch.states),
          at::where(mirrored, ReflectPoints(batch.actions), batch.actions), batch.late};
}

}  // namespace mjp::app

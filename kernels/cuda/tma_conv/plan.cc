#include "kernels/cuda/tma_conv/plan.h"

#include <algorithm>

namespace mjp::tma_conv {
namespace {

constexpr int kLongestExtent = 256;  // of a copy by TMA

int CeilDivide(int a, int b) { return (a + b - 1) / b; }

// Gives `plan` the tiles of the fewest products: `pitch` wide patches, as many rows as positions
// allow.
void ChooseTiles(const ConvShape& s, Plan& plan) {
  int best = 0;
  for (int width = 1; width <= plan.map_width; ++width) {
    const int pitch = width + s.kernel_w - 1;
    if (pitch > kLongestExtent || width > kPositions) break;
    const int rows = std::min((kPositions - width) / pitch + 1, plan.height);
    const int tiles = CeilDivide(plan.height, rows) * CeilDivide(plan.map_width, width);
    if (best > 0 && tiles >= best) continue;
    best = tiles;
    plan.rows = rows, plan.width = width, plan.pitch = pitch;
  }
}

// Fills shared memory. A tile of one tap reads as many patches as weights; of several taps, a patch
// lasts for all of them.
bool ChooseSlots(int taps, Plan& plan) {
  const auto fits = [&] { return plan.SharedBytes() <= kMaxSharedBytesSm90; };
  const auto grow = [&](int& slots) {
    ++slots;
    if (fits()) return true;
    --slots;
    return false;
  };
  plan.patch_slots = plan.weight_slots = 2;
  if (!fits()) return false;
  const int patches = taps == 1 ? kMostSlots : 2 + plan.TilesAtOnce();
  while (plan.patch_slots < patches && plan.weight_slots < kMostSlots) {
    if (!grow(plan.patch_slots) || !grow(plan.weight_slots)) break;
  }
  while (plan.weight_slots < kMostSlots && grow(plan.weight_slots)) {
  }
  return true;
}

}  // namespace

size_t Plan::SharedBytes() const {
  return kAlignment + kStagingBytes + 2 * kMostSlots * kBarrierBytes +
         size_t{kSliceBytes} * (weight_slots * channels + patch_slots * slot_rows);
}

std::optional<Plan> MakePlan(const ConvArgs& args) {
  const ConvShape& s = args.shape;
  const bool plain = s.stride == 1 && s.phases == 1 && !s.upsample2x && s.first_c == 0;
  // the last position's last tap is the input's last, or one beyond the border
  const bool same = s.out_h == s.in_h + 2 * s.pad_h - s.kernel_h + 1 &&
                    s.out_w == s.in_w + 2 * s.pad_w - s.kernel_w + 1;
  if (!plain || !same || s.in_c % kSliceChannels != 0 || s.out_c % kSliceChannels != 0) return {};
  Plan plan;
  plan.maps = s.batch, plan.height = s.out_h, plan.map_width = s.out_w;
  if (s.IsLinear()) {
    // tokens: in one row, or a row for each sequence where a position has a bias
    const bool sequences = args.row_bias != nullptr;
    if (sequences && s.batch % args.row_period != 0) return {};
    plan.maps = 1;
    plan.map_width = sequences ? args.row_period : s.batch;
    plan.height = s.batch / plan.map_width;
    plan.width = plan.pitch = sequences ? 8 : kPositions;
    plan.rows = kPositions / plan.width;
  } else {
    if (args.row_bias != nullptr) return {};
    ChooseTiles(s, plan);
  }
  plan.channels = s.out_c % (2 * kSliceChannels) == 0 ? 2 * kSliceChannels : kSliceChannels;
  plan.bands = CeilDivide(plan.height, plan.rows);
  plan.columns = CeilDivide(plan.map_width, plan.width);
  plan.slices = s.in_c / kSliceChannels;
  plan.patch_rows = plan.pitch * (plan.rows + s.kernel_h - 1);
  const int last = kPositions + (s.kernel_h - 1) * plan.pitch + s.kernel_w - 1;
  plan.slot_rows = CeilDivide(std::max(plan.patch_rows, last), 8) * 8;
  if (plan.rows + s.kernel_h - 1 > kLongestExtent || !ChooseSlots(s.kernel_h * s.kernel_w, plan))
    return {};
  return plan;
}

double MeasuredTime(const Plan& plan, const ConvShape& shape) {
  constexpr double kStage = 0.68, kTile = 2.5, kLaunch = 4;
  const int rounds = CeilDivide(plan.Units(shape.out_c), GpuTraits::Hopper().multiprocessors);
  const int stages = plan.slices * shape.kernel_h * shape.kernel_w;
  return rounds * (stages * kStage + kTile) + kLaunch;
}

}  // namespace mjp::tma_conv

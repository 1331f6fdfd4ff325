#include "kernels/cuda/tma_linear/plan.h"

#include <algorithm>

namespace mjp::tma_linear {
namespace {

constexpr int kLeastTokens = 33, kMostTokens = 1152;
constexpr int kLeastSlices = 4;  // of a part, where k is split

// Microseconds of a slice in tiles of so many channels.
struct MeasuredTile {
  int channels;
  double slice;
};
constexpr MeasuredTile kTiles[] = {{96, 0.33}, {64, 0.22}, {128, 0.45}};

int CeilDivide(int a, int b) { return (a + b - 1) / b; }

bool IsTaken(const ConvArgs& args) {
  const ConvShape& s = args.shape;
  return s.IsLinear() && !args.y_fp32 && s.in_c % kSliceChannels == 0 && s.batch >= kLeastTokens &&
         s.batch <= kMostTokens;
}

// As many slots as shared memory has, and as the slices need.
int Slots(const Plan& plan) {
  const int others = plan.StreamOffset() - plan.BarrierOffset() + plan.StreamBytes();
  const int fit = (kMaxSharedBytesSm90 - others) / plan.SlotBytes();
  return std::min({fit, kMostSlots, std::max(2, CeilDivide(plan.slices, plan.split))});
}

}  // namespace

int Plan::BarrierOffset() const {
  const int sums = kTokens * (channels + kSumGap) * static_cast<int>(sizeof(float));
  return std::max(slots * SlotBytes(), sums);
}

std::vector<Plan> Plans(const ConvArgs& args, bool adds_to_stream) {
  std::vector<Plan> plans;
  if (!IsTaken(args)) return plans;
  const ConvShape& s = args.shape;
  for (const MeasuredTile& tile : kTiles) {
    if (s.out_c % tile.channels != 0) continue;
    Plan plan;
    plan.channels = tile.channels;
    plan.token_tiles = CeilDivide(s.batch, kTokens);
    plan.channel_tiles = s.out_c / tile.channels;
    plan.sharers = plan.channel_tiles % 2 == 0 ? 2 : 1;
    plan.slices = s.in_c / kSliceChannels;
    plan.adds_to_stream = adds_to_stream;
    for (plan.split = 1; plan.split <= kMostSplit; plan.split *= 2) {
      if (plan.split > 1 && plan.slices / plan.split < kLeastSlices) break;
      plan.slots = Slots(plan);
      plans.push_back(plan);
    }
  }
  return plans;
}

std::optional<Plan> MakePlan(const ConvArgs& args, bool adds_to_stream) {
  const std::vector<Plan> plans = Plans(args, adds_to_stream);
  const auto best = std::min_element(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
    return MeasuredTime(a) < MeasuredTime(b);
  });
  return best == plans.end() ? std::nullopt : std::optional(*best);
}

double MeasuredTime(const Plan& plan) {
  constexpr double kTileTime = 2.7, kSplitTime = 3;
  const int at_once = GpuTraits::Hopper().MultiprocessorsInClusters(plan.Cluster());
  const auto* tile = std::find_if(std::begin(kTiles), std::end(kTiles), [&](const MeasuredTile& t) {
    return t.channels == plan.channels;
  });
  const double time = CeilDivide(plan.slices, plan.split) * tile->slice + kTileTime;
  return CeilDivide(plan.Ctas(), at_once) * time + (plan.split > 1 ? kSplitTime : 0);
}

}  // namespace mjp::tma_linear

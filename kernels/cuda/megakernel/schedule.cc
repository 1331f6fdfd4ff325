#include <algorithm>
#include <bit>
#include <iterator>

#include "base/power_of_two.h"
#include "kernels/cuda/megakernel/megakernel.cuh"

namespace mjp {
namespace {

constexpr int kMostPositions = 64;  // of a team
constexpr int kLeastPositions = 4;
constexpr int kWideMostNumbers = 4 * kChainThreads;  // of an item
constexpr size_t kFewWeightBytes = 100 * 1024;       // of a block and stage

int Log2(int power) { return std::bit_width(static_cast<unsigned>(power)) - 1; }

int ItemNumbers(const FusedConvShape& s) { return s.out_c / kWideGroups * s.out_length * s.phases; }

// How a team shares the work where the in channels have `splits` shares.
bool ShareWork(WideStage& s, int splits) {
  const FusedConvShape& shape = s.shape;
  const int group = shape.out_c / kWideGroups, groups = std::max(1, kWideTile / group);
  if (groups > kWideGroups) return false;
  const int parts = shape.phases * groups * group / kWideTile;
  const int team = std::max(groups, splits * parts);
  const int rows = team / groups;
  s.share = shape.in_c / splits;
  s.splits_log2 = Log2(splits), s.parts_log2 = Log2(parts);
  s.groups_log2 = Log2(groups), s.rows_log2 = Log2(rows);
  const int positions = rows * shape.out_length;
  const bool refills = s.share > kWideFilling;
  return rows * groups == team && rows >= 1 && rows <= kWideSlots &&
         rows << s.in_log2 <= kChainThreads && positions <= kMostPositions &&
         positions >= kLeastPositions && shape.in_c % splits == 0 && s.share % kWideFilling == 0 &&
         s.source_channels % kWideFilling == 0 &&
         (!refills || (positions == kMostPositions && shape.stride == 1));
}

// Whether a block may make the products of its item: the kernel has those of five taps, and of a
// stride of 2, of up to 16 positions.
bool CanBeWhole(const WideStage& s) {
  const FusedConvShape& shape = s.shape;
  const int group = shape.out_c / kWideGroups, length = shape.out_length;
  return shape.in_c == kWholeChannels && s.source_channels == shape.in_c && group == kWholeTile &&
         shape.phases == 1 && !shape.residual &&
         (length == 8 || (length == 16 && shape.stride == 1));
}

// Whether a team has the rows of all slots.
bool TeamsHaveAllRows(const WideStage& s) {
  return s.shape.in_c > 0 && 1 << s.rows_log2 == kWideSlots;
}

}  // namespace

bool PlanWideStage(WideStage& s) {
  const FusedConvShape& shape = s.shape;
  const int group = shape.out_c / kWideGroups, length = shape.out_length * shape.phases;
  const int item = ItemNumbers(shape);
  if (!IsPowerOfTwo(shape.out_c) || group < 8 || !IsPowerOfTwo(length) ||
      !IsPowerOfTwo(shape.in_length))
    return false;
  if (item % 128 != 0 || item > kWideMostNumbers) return false;
  s.item_log2 = Log2(group), s.in_log2 = Log2(shape.in_length), s.out_log2 = Log2(shape.out_length);
  s.own.item_channels = group;
  if (shape.in_c == 0) {
    return true;
  }
  const bool plain = shape.stride == 1 && shape.phases == 1;
  if (!(plain && shape.taps == 5) && !(shape.stride == 2 && shape.taps == 3 && shape.pad == 1) &&
      shape.phases != 2)
    return false;
  if (shape.residual && !plain) return false;
  s.left = plain ? shape.pad : 1;
  s.places = shape.in_length + (plain ? shape.taps - 1 : shape.phases == 2 ? 2 : 1);
  const auto few = [&] {
    return size_t{2} * kWideTile * s.share * (shape.taps + shape.residual) <= kFewWeightBytes;
  };
  int best = 0;
  for (int splits = 1; splits <= kWideMaxSplits; splits *= 2) {
    if (!ShareWork(s, splits)) continue;
    best = splits;
    if (few()) break;
  }
  if (best == 0 || !ShareWork(s, best)) return false;
  s.sums.words = best * item;
  if (shape.residual) s.beside.words = best * item;
  return true;
}

bool HaveRoles(const std::vector<WideStage>& stages) {
  return std::all_of(stages.begin(), stages.end(), [](const WideStage& s) {
    return s.share <= kWideFilling && ItemNumbers(s.shape) <= 4 * kWideFinishers;
  });
}

void PlanWhole(std::vector<WideStage>& stages) {
  for (WideStage& s : stages) {
    if (!CanBeWhole(s)) continue;
    s.whole = true, s.share = s.shape.in_c, s.sums = {};
    s.splits_log2 = s.parts_log2 = s.groups_log2 = s.rows_log2 = 0;
  }
}

bool KeepBlocksTogether(const std::vector<WideStage>& stages) {
  if (std::none_of(stages.begin(), stages.end(), TeamsHaveAllRows)) return false;
  for (int block = 0; block < kWideBlocks; ++block) {
    const WideItem item = ItemOfBlock(block);
    if (std::none_of(stages.begin(), stages.end(), [&](const WideStage& s) {
          return s.shape.in_c > 0 && TeamOf(s, item).multiplies;
        }))
      return false;
  }
  return true;
}

void PlaceFence(std::vector<WideStage>& stages) {
  std::next(std::find_if(stages.rbegin(), stages.rend(), TeamsHaveAllRows))->fence = true;
}

}  // namespace mjp

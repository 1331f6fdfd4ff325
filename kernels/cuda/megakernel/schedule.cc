// How the CTAs split each layer, and the checks of what README.md's invariants rest on. On the
// host, and tested there: tests/kernels/cuda/megakernel_schedule_test.cc.

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/power_of_two.h"
#include "kernels/cuda/megakernel/megakernel.cuh"

namespace mjp::megakernel {
namespace {

constexpr int kMaxColumns = 64;  // of a GEMM tile: positions x rows
constexpr int kMinColumns = 4;
constexpr int kMaxTileValues = 4 * kMmaThreads;   // of an output tile
constexpr size_t kSmallWeightBytes = 100 * 1024;  // of a CTA in a layer: more would not be hidden

int Log2(int power) { return std::bit_width(static_cast<unsigned>(power)) - 1; }

int TileValues(const NormConvShape& s) { return s.out_c / kNormGroups * s.out_length * s.phases; }

// How a CTA group splits the GEMM, with `split_k` K slices. False where it cannot.
bool SplitWork(Layer& s, int split_k) {
  const NormConvShape& shape = s.shape;
  const int group = shape.out_c / kNormGroups, groups = std::max(1, kTileChannels / group);
  if (groups > kNormGroups) return false;
  const int m_tiles = shape.phases * groups * group / kTileChannels;
  const int members = std::max(groups, split_k * m_tiles);
  const int rows = members / groups;
  s.k_slice = shape.in_c / split_k;
  s.split_k_log2 = Log2(split_k), s.m_tiles_log2 = Log2(m_tiles);
  s.groups_log2 = Log2(groups), s.rows_log2 = Log2(rows);
  const int columns = rows * shape.out_length;
  const bool many_k_blocks = s.k_slice > kBlockK;
  return rows * groups == members && rows >= 1 && rows <= kRowsPerBatch &&
         rows << s.in_length_log2 <= kMmaThreads && columns <= kMaxColumns &&
         columns >= kMinColumns && shape.in_c % split_k == 0 && s.k_slice % kBlockK == 0 &&
         s.source_channels % kBlockK == 0 &&
         (!many_k_blocks || (columns == kMaxColumns && shape.stride == 1));
}

// Whether a layer can be CTA-local: the kernel has five taps, and a stride of 2, for up to 16
// columns.
bool CanBeCtaLocal(const Layer& s) {
  const NormConvShape& shape = s.shape;
  const int group = shape.out_c / kNormGroups, length = shape.out_length;
  return shape.in_c == kLocalBlockK && s.source_channels == shape.in_c &&
         group == kLocalTileChannels && shape.phases == 1 && !shape.shortcut &&
         (length == 8 || (length == 16 && shape.stride == 1));
}

}  // namespace

bool SpansAllRows(const Layer& s) { return s.shape.in_c > 0 && 1 << s.rows_log2 == kRowsPerBatch; }

bool PlanLayer(Layer& s) {
  const NormConvShape& shape = s.shape;
  const int group = shape.out_c / kNormGroups, length = shape.out_length * shape.phases;
  const int values = TileValues(shape);
  if (!IsPowerOfTwo(shape.out_c) || group < 8 || !IsPowerOfTwo(length) ||
      !IsPowerOfTwo(shape.in_length))
    return false;
  if (values % 128 != 0 || values > kMaxTileValues) return false;
  s.group_channels_log2 = Log2(group), s.in_length_log2 = Log2(shape.in_length),
  s.out_length_log2 = Log2(shape.out_length);
  if (shape.in_c == 0) {
    return true;
  }
  const bool plain = shape.stride == 1 && shape.phases == 1;
  if (!(plain && shape.taps == 5) && !(shape.stride == 2 && shape.taps == 3 && shape.pad == 1) &&
      shape.phases != 2)
    return false;
  if (shape.shortcut && !plain) return false;
  s.halo = plain ? shape.pad : 1;
  s.padded_length = shape.in_length + (plain ? shape.taps - 1 : shape.phases == 2 ? 2 : 1);
  const auto weights_are_small = [&] {
    return size_t{2} * kTileChannels * s.k_slice * (shape.taps + shape.shortcut) <=
           kSmallWeightBytes;
  };
  int best = 0;
  for (int split_k = 1; split_k <= kMaxSplitK; split_k *= 2) {
    if (!SplitWork(s, split_k)) continue;
    best = split_k;
    if (weights_are_small()) break;
  }
  if (best == 0 || !SplitWork(s, best)) return false;
  s.mailbox.tile_values = best * values;
  if (shape.shortcut) s.shortcut_mailbox.tile_values = best * values;
  return true;
}

void SpanAllRowsOnce(std::vector<Layer>& layers) {
  if (SkewIsBounded(layers)) return;
  const auto last = std::find_if(layers.rbegin(), layers.rend(), [](const Layer& s) {
    return s.shape.in_c > 0 && s.shape.stride == 1 && s.shape.phases == 1 &&
           kRowsPerBatch * s.shape.out_length <= kMaxColumns;
  });
  if (last != layers.rend()) last->rows_log2 = Log2(kRowsPerBatch);
}

bool CanSpecializeWarps(const std::vector<Layer>& layers) {
  return std::all_of(layers.begin(), layers.end(), [](const Layer& s) {
    return s.k_slice <= kBlockK && TileValues(s.shape) <= 4 * kEpilogueThreads;
  });
}

void PlanCtaLocal(std::vector<Layer>& layers) {
  for (Layer& s : layers) {
    if (!CanBeCtaLocal(s)) continue;
    s.cta_local = true, s.k_slice = s.shape.in_c, s.mailbox = {};
    s.split_k_log2 = s.m_tiles_log2 = s.groups_log2 = s.rows_log2 = 0;
  }
}

bool SkewIsBounded(const std::vector<Layer>& layers) {
  return std::any_of(layers.begin(), layers.end(), SpansAllRows);
}

bool EveryCtaMultiplies(const std::vector<Layer>& layers) {
  for (int cta = 0; cta < kCtas; ++cta) {
    const OutputTile tile = TileOfCta(cta);
    if (std::none_of(layers.begin(), layers.end(), [&](const Layer& s) {
          return s.shape.in_c > 0 && GemmTileOf(s, tile).has_work;
        }))
      return false;
  }
  return true;
}

int UseBeforeLast(const std::vector<Layer>& layers, Mailbox Layer::*mailbox, int layer) {
  const Layer& s = layers[layer];
  int found = 0;
  for (int i = layer - 1; i >= 0 && (s.*mailbox).tile_values > 0; --i) {
    const bool same = (layers[i].*mailbox).tile_values == (s.*mailbox).tile_values &&
                      layers[i].split_k_log2 == s.split_k_log2;
    if (same && ++found == 2) return i;
  }
  return -1;
}

bool TwoMailboxBuffersSuffice(const std::vector<Layer>& layers) {
  const int count = static_cast<int>(layers.size());
  for (int j = 0; j < count; ++j) {
    if (layers[j].source_channels == layers[j].shape.in_c) continue;
    // a sender whose K slice is of the skip alone: these rows' owners are past layer `known`
    int known = -1;
    for (int m = j - 1; m > 0 && known < 0; --m)
      if (layers[m].shape.in_c > 0 && layers[m].rows_log2 >= layers[j].rows_log2) known = m - 1;
    if (UseBeforeLast(layers, &Layer::mailbox, j) > known ||
        UseBeforeLast(layers, &Layer::shortcut_mailbox, j) > known)
      return false;
  }
  return true;
}

void PlaceFence(std::vector<Layer>& layers) {
  std::next(std::find_if(layers.rbegin(), layers.rend(), SpansAllRows))->fence = true;
}

}  // namespace mjp::megakernel

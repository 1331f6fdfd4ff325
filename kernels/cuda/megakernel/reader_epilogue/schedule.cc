#include <algorithm>
#include <iterator>

#include "base/power_of_two.h"
#include "kernels/cuda/megakernel/args.cuh"

namespace mjp {
namespace {

constexpr int kStepChannels = 16, kMaxPositions = 64;
// Of a block and stage: what its ring can hide, and what still beats a launch per layer.
constexpr size_t kHiddenWeightBytes = 100 * 1024, kMostWeightBytes = 400 * 1024;

bool Finished(const ChainSource& s) {
  return s.words != nullptr && s.bias == nullptr && s.norm_scale == nullptr;
}

// Whether each of `splits` shares is made of whole items of one source.
bool CanSplit(const ChainStage& s, int splits) {
  const int share = s.shape.in_c / splits;
  if (s.shape.in_c % splits != 0 || share % kStepChannels != 0 || !IsPowerOfTwo(share))
    return false;
  return std::all_of(std::begin(s.source), std::end(s.source), [&](const ChainSource& source) {
    return source.channels % share == 0 &&
           (Finished(source) || source.channels == 0 || share % source.item_channels == 0);
  });
}

// Whether a team can hold each of `items` of `source` at once.
bool ItemsFit(const ChainSource& source, int items, int length, int most_vectors) {
  const int vectors = source.item_channels / 4 * length;
  const int threads = 32 * ChainTeamWarps(items, vectors);
  const bool whole = vectors <= 32 || vectors % threads == 0;
  return IsPowerOfTwo(source.item_channels) && source.item_channels >= 4 &&
         source.item_channels / 4 <= threads && vectors <= most_vectors * threads && whole;
}

// Whether the readers can finish what is not finished: at few rows with a vector per thread.
bool SourcesFit(const ChainStage& s, bool owned) {
  const int share = s.shape.in_c / s.splits;
  return std::all_of(std::begin(s.source), std::end(s.source), [&](const ChainSource& source) {
    if (source.channels == 0 || Finished(source)) return true;
    if (!owned) return ItemsFit(source, 1, s.shape.in_length, 1);
    return ItemsFit(source, s.rows * share / source.item_channels, s.shape.in_length,
                    kChainMaxVectors);
  });
}

size_t BlockWeightBytes(const ChainStage& s) {
  return size_t{2} * s.m_channels * (s.shape.in_c / s.splits) * (s.shape.taps + s.shape.residual);
}

// Every block has all rows: the largest split, so that readers have least to add up.
bool ShareAllRows(ChainStage& s) {
  const int channels = s.shape.out_c * s.shape.phases;
  s.rows = s.shape.rows;
  for (s.splits = kChainMaxSplits; !CanSplit(s, s.splits); s.splits /= 2)
    if (s.splits == 1) return false;
  for (s.m_channels = 16; channels / s.m_channels * s.splits > kChainMaxBlocks; s.m_channels *= 2) {
  }
  return s.shape.out_c % s.m_channels == 0 && s.m_channels <= 16 * kChainWarps;
}

// Blocks have few rows: the smallest split whose weights the ring hides; where there is none, the
// fewest weights, and of those the largest split, which has the smallest input.
bool ShareRowSets(ChainStage& s) {
  const int channels = s.shape.out_c * s.shape.phases;
  ChainStage best;
  size_t fewest = kMostWeightBytes + 1;
  for (int m : {s.shape.out_c >= 512 ? 64 : 32, 32, 128}) {
    for (int splits : {1, 2, 4, 8}) {
      s.m_channels = m, s.splits = splits;
      if (s.shape.out_c % m != 0 || !CanSplit(s, splits)) continue;
      const int sets = std::max(1, kChainMaxBlocks / (channels / m * splits));
      s.rows = std::max(1, s.shape.rows / sets);
      if (channels / m * splits > kChainMaxBlocks || s.shape.rows % s.rows != 0) continue;
      if (s.rows * s.shape.out_length > kMaxPositions || !SourcesFit(s, true)) continue;
      const size_t bytes = BlockWeightBytes(s);
      if (bytes <= kHiddenWeightBytes) return true;
      if (bytes < fewest || (bytes == fewest && splits > best.splits)) best = s, fewest = bytes;
    }
  }
  s = best;
  return fewest <= kMostWeightBytes;
}

}  // namespace

bool PlanChainStage(ChainStage& s, bool owned) {
  const FusedConvShape& shape = s.shape;
  if (!IsPowerOfTwo(shape.in_length) || !IsPowerOfTwo(shape.out_length) || shape.taps > 7)
    return false;
  if (!(owned ? ShareRowSets(s) : ShareAllRows(s))) return false;
  if (s.rows * shape.out_length > kMaxPositions || !SourcesFit(s, owned)) return false;
  if (s.own.channels > 0 && !ItemsFit(s.own, 1, shape.out_length * shape.phases, kChainOwnVectors))
    return false;
  s.share = shape.in_c / s.splits;
  s.n_tiles = 1;
  while (s.n_tiles * 8 < s.rows * shape.out_length) s.n_tiles *= 2;
  s.layout.left = shape.phases == 2 ? 1 : shape.pad;
  const int right = shape.phases == 2 ? 1 : shape.taps - 1 - shape.pad - (shape.stride - 1);
  s.layout.period = shape.in_length + std::max(s.layout.left, right);
  s.layout.pitch = shape.in_c / s.splits * 2 + 16;  // an odd number of 16 bytes: no bank conflicts
  return true;
}

}  // namespace mjp

#include <algorithm>
#include <iterator>

#include "base/power_of_two.h"
#include "kernels/cuda/megakernel/args.cuh"

namespace mjp::megakernel {
namespace {

constexpr int kStepChannels = 16, kMaxPositions = 64;
// Of a CTA in a layer: what its ring can hide, and what still beats a launch per layer.
constexpr size_t kHiddenWeightBytes = 100 * 1024, kMostWeightBytes = 400 * 1024;

bool Materialized(const EpilogueSource& s) {
  return s.values != nullptr && s.bias == nullptr && s.norm_scale == nullptr;
}

// Whether each of `split_k` K slices is whole output tiles of one source.
bool CanSplit(const ReaderLayer& s, int split_k) {
  const int k_slice = s.shape.in_c / split_k;
  if (s.shape.in_c % split_k != 0 || k_slice % kStepChannels != 0 || !IsPowerOfTwo(k_slice))
    return false;
  return std::all_of(std::begin(s.source), std::end(s.source), [&](const EpilogueSource& source) {
    return source.channels % k_slice == 0 &&
           (Materialized(source) || source.channels == 0 || k_slice % source.group_channels == 0);
  });
}

// Whether a CTA holds `tiles` output tiles of `source` in its registers.
bool TilesFit(const EpilogueSource& source, int tiles, int length, int most_vectors) {
  const int vectors = source.group_channels / 4 * length;
  const int threads = 32 * WarpsPerTile(tiles, vectors);
  const bool even = vectors <= 32 || vectors % threads == 0;
  return IsPowerOfTwo(source.group_channels) && source.group_channels >= 4 &&
         source.group_channels / 4 <= threads && vectors <= most_vectors * threads && even;
}

// Whether the readers can run the epilogue of what is not materialised: at few rows with a vector
// per thread.
bool ReadersFit(const ReaderLayer& s, bool owner_epilogue) {
  const int k_slice = s.shape.in_c / s.split_k;
  return std::all_of(std::begin(s.source), std::end(s.source), [&](const EpilogueSource& source) {
    if (source.channels == 0 || Materialized(source)) return true;
    if (!owner_epilogue) return TilesFit(source, 1, s.shape.in_length, 1);
    return TilesFit(source, s.rows * k_slice / source.group_channels, s.shape.in_length,
                    kReaderMaxVectors);
  });
}

size_t CtaWeightBytes(const ReaderLayer& s) {
  return size_t{2} * s.m_channels * (s.shape.in_c / s.split_k) * (s.shape.taps + s.shape.shortcut);
}

// Every CTA has all rows: the largest split of K, which has the smallest input.
bool SplitAllRows(ReaderLayer& s) {
  const int channels = s.shape.out_c * s.shape.phases;
  s.rows = s.shape.rows;
  for (s.split_k = kMaxPartialSums; !CanSplit(s, s.split_k); s.split_k /= 2)
    if (s.split_k == 1) return false;
  for (s.m_channels = 16; channels / s.m_channels * s.split_k > kReaderMaxCtas; s.m_channels *= 2) {
  }
  return s.shape.out_c % s.m_channels == 0 && s.m_channels <= 16 * kMmaWarps;
}

// CTAs have few rows: the smallest split whose weights the ring hides; where there is none, the
// fewest weights, and of those the largest split, which has the smallest input.
bool SplitRowSets(ReaderLayer& s) {
  const int channels = s.shape.out_c * s.shape.phases;
  ReaderLayer best;
  size_t fewest = kMostWeightBytes + 1;
  for (int m : {s.shape.out_c >= 512 ? 64 : 32, 32, 128}) {
    for (int split_k : {1, 2, 4, 8}) {
      s.m_channels = m, s.split_k = split_k;
      if (s.shape.out_c % m != 0 || !CanSplit(s, split_k)) continue;
      const int sets = std::max(1, kReaderMaxCtas / (channels / m * split_k));
      s.rows = std::max(1, s.shape.rows / sets);
      if (channels / m * split_k > kReaderMaxCtas || s.shape.rows % s.rows != 0) continue;
      if (s.rows * s.shape.out_length > kMaxPositions || !ReadersFit(s, true)) continue;
      const size_t bytes = CtaWeightBytes(s);
      if (bytes <= kHiddenWeightBytes) return true;
      if (bytes < fewest || (bytes == fewest && split_k > best.split_k)) best = s, fewest = bytes;
    }
  }
  s = best;
  return fewest <= kMostWeightBytes;
}

}  // namespace

bool PlanReaderLayer(ReaderLayer& s, bool owner_epilogue) {
  const NormConvShape& shape = s.shape;
  if (!IsPowerOfTwo(shape.in_length) || !IsPowerOfTwo(shape.out_length) || shape.taps > 7)
    return false;
  if (!(owner_epilogue ? SplitRowSets(s) : SplitAllRows(s))) return false;
  if (s.rows * shape.out_length > kMaxPositions || !ReadersFit(s, owner_epilogue)) return false;
  if (s.own.channels > 0 && !TilesFit(s.own, 1, shape.out_length * shape.phases, kOwnerMaxVectors))
    return false;
  s.k_slice = shape.in_c / s.split_k;
  s.n_tiles = 1;
  while (s.n_tiles * 8 < s.rows * shape.out_length) s.n_tiles *= 2;
  s.layout.halo = shape.phases == 2 ? 1 : shape.pad;
  const int right = shape.phases == 2 ? 1 : shape.taps - 1 - shape.pad - (shape.stride - 1);
  s.layout.period = shape.in_length + std::max(s.layout.halo, right);
  s.layout.pitch = shape.in_c / s.split_k * 2 + 16;  // an odd number of 16 bytes: no bank conflicts
  return true;
}

}  // namespace mjp::megakernel

#include "kernels/cuda/norm_conv/norm_conv_plan.h"

#include <algorithm>
#include <initializer_list>

#include "base/power_of_two.h"

namespace mjp {
namespace {

// Whether `split` blocks of a cluster each get whole groups of one source.
bool CanSplit(Format format, const FusedConvArgs& a, int split) {
  const int step = kStepBytes / static_cast<int>(FormatBytes(format));
  const int slice = a.shape.in_c / split;
  if (a.shape.in_c % split != 0 || slice % step != 0 || !IsPowerOfTwo(slice / kFusedPack))
    return false;
  return std::all_of(std::begin(a.source), std::end(a.source), [&](const FusedSource& s) {
    return s.channels % slice == 0 && (s.group_channels == 0 || slice % s.group_channels == 0);
  });
}

// Rows first: a block takes up to 64 positions (128 where there would be too many blocks). Few
// positions: narrow blocks and small clusters, whose sums meet soonest. Many: wide blocks and large
// clusters, since every block normalises its own input; beyond 16 rows clusters of 4 measured
// faster than those of 8, of which the H200 holds 15 at a time, where their input fits.
FusedConvConfig ChooseFusedConfig(Format format, const FusedConvArgs& a) {
  constexpr int kEnoughBlocks = 96, kTooManyBlocks = 160;  // about one per multiprocessor
  constexpr int kFewPositions = 16, kManyRows = 16, kFewChannels = 1024;
  const FusedConvShape& s = a.shape;
  FusedConvConfig c;
  const auto blocks = [&] {
    return (s.rows + c.block_rows - 1) / c.block_rows * (s.out_c / c.block_m) * s.phases *
           c.split_k;
  };
  // the first of `splits` that is possible and makes at least so many blocks
  const auto split = [&](std::initializer_list<int> splits, int at_least) {
    return std::any_of(splits.begin(), splits.end(), [&](int split_k) {
      c.split_k = split_k;
      return CanSplit(format, a, split_k) && blocks() >= at_least;
    });
  };
  for (int positions : {64, 128}) {
    c.block_rows = std::max(1, std::min(s.rows, positions / s.out_length));
    c.block_m = 16;
    if (c.block_rows * s.out_length <= kFewPositions && split({1, 2, 4, 8}, kEnoughBlocks)) break;
    if (s.rows > kManyRows && s.in_c <= kFewChannels) {
      split({4, 2, 1, 8}, 0);
    } else {
      split({8, 4, 2, 1}, 0);
    }
    for (int block_m : {64, 32}) {
      c.block_m = block_m;
      if (s.out_c % block_m == 0 && blocks() >= kEnoughBlocks) break;
    }
    if (blocks() <= kTooManyBlocks) break;
  }
  c.n_tiles = 1;
  while (c.n_tiles * 8 < c.block_rows * s.out_length) c.n_tiles *= 2;
  return c;
}

}  // namespace

FusedKernelArgs PlanFusedConv(Format format, const FusedConvArgs& args, size_t* shared_bytes) {
  FusedKernelArgs p = {args, {}, 0, {}, 0, 0};
  const FusedConvShape& s = p.a.shape;
  p.config = ChooseFusedConfig(format, p.a);
  p.slice_channels = s.in_c / p.config.split_k;
  p.layout.left = s.phases == 2 ? 1 : s.pad;
  const int right = s.phases == 2 ? 1 : s.taps - 1 - s.pad - (s.stride - 1);
  p.layout.period = s.in_length + std::max(p.layout.left, right);
  const int element = static_cast<int>(FormatBytes(format));
  p.layout.pitch = p.slice_channels * element + 16;  // an odd number of 16 bytes: no bank conflicts
  const int tiles = WarpTiles(p.config.n_tiles, s.residual);
  const int parts = kFusedWarps / (p.config.block_m / (16 * tiles));
  const int steps = p.slice_channels * element / kStepBytes * (s.taps + s.residual);
  const int chunk_steps = kChunkFragments / tiles;
  const int chunks = ((steps + parts - 1) / parts + chunk_steps - 1) / chunk_steps;
  p.ring_chunks = std::min(chunks, kRingChunks);
  p.input_offset = kFusedWarps * p.ring_chunks * kChunkBytes;
  const size_t input =
      size_t{1} * p.layout.pitch * (p.layout.left + p.config.block_rows * p.layout.period);
  const size_t sums =
      sizeof(float) * p.config.n_tiles * 8 * (p.config.block_m + 4) * parts * (1 + s.residual);
  *shared_bytes = std::max(p.input_offset + input, sums);
  return p;
}

bool FusedSourceSupports(const FusedSource& s, int length) {
  if (!IsPowerOfTwo(length)) return false;
  if (s.group_channels == 0) return true;
  const int wide = s.group_channels / kFusedPack;
  return s.group_channels % kFusedPack == 0 && IsPowerOfTwo(wide) && wide <= 32 &&
         wide * length <= 32 * kFusedPacks;
}

bool FusedConvSupports(Format format, const FusedConvArgs& a) {
  const FusedConvShape& s = a.shape;
  if (FormatBytes(format) != 2 || s.out_c % 32 != 0 || s.out_length > 128 ||
      !IsPowerOfTwo(s.out_length) || s.taps > 7)
    return false;
  if (a.source[0].channels + a.source[1].channels != s.in_c || s.in_c == 0) return false;
  for (const FusedSource& source : a.source)
    if (!FusedSourceSupports(source, s.in_length)) return false;
  const auto can_split = [&](int split) { return CanSplit(format, a, split); };
  constexpr int kSplits[] = {1, 2, 4, 8};
  if (std::none_of(std::begin(kSplits), std::end(kSplits), can_split)) return false;
  size_t shared_bytes = 0;
  PlanFusedConv(format, a, &shared_bytes);
  return shared_bytes <= size_t{kFusedMaxSharedBytes};
}

}  // namespace mjp

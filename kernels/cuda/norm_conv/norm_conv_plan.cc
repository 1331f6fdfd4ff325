#include "kernels/cuda/norm_conv/norm_conv_plan.h"

#include <algorithm>
#include <initializer_list>

#include "base/power_of_two.h"
#include "kernels/cuda/primitives/gpu_traits.h"

namespace mjp {
namespace {

// Whether `split` CTAs of a cluster each get whole norm groups of one source.
bool CanSplit(Format format, const NormConvArgs& a, int split) {
  const int step = kStepBytes / static_cast<int>(FormatBytes(format));
  const int slice = a.shape.in_c / split;
  if (a.shape.in_c % split != 0 || slice % step != 0 || !IsPowerOfTwo(slice / kPackChannels))
    return false;
  return std::all_of(std::begin(a.source), std::end(a.source), [&](const NormConvSource& s) {
    return s.channels % slice == 0 && (s.group_channels == 0 || slice % s.group_channels == 0);
  });
}

// Rows first: a CTA takes up to 64 positions (128 where there would be too many CTAs). Few
// positions: small tiles and small clusters, whose reduction is shortest. Many: large tiles and
// large clusters, since every CTA normalises its own input; beyond 16 rows clusters of 4 measured
// faster than those of 8, of which the H200 holds 15 at a time, where their input fits.
NormConvConfig ChooseNormConvConfig(Format format, const NormConvArgs& a) {
  constexpr int kEnoughBlocks = 96, kTooManyBlocks = 160;  // constants: the split sets the bits
  constexpr int kFewPositions = 16, kManyRows = 16, kFewChannels = 1024;
  const NormConvShape& s = a.shape;
  NormConvConfig c;
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

NormConvKernelArgs PlanNormConv(Format format, const NormConvArgs& args, size_t* shared_bytes) {
  NormConvKernelArgs p = {args, {}, 0, {}, 0, 0};
  const NormConvShape& s = p.a.shape;
  p.config = ChooseNormConvConfig(format, p.a);
  p.slice_channels = s.in_c / p.config.split_k;
  p.layout.halo = s.phases == 2 ? 1 : s.pad;
  const int right = s.phases == 2 ? 1 : s.taps - 1 - s.pad - (s.stride - 1);
  p.layout.period = s.in_length + std::max(p.layout.halo, right);
  const int element = static_cast<int>(FormatBytes(format));
  p.layout.pitch = p.slice_channels * element + 16;  // an odd number of 16 bytes: no bank conflicts
  const int tiles = WarpTiles(p.config.n_tiles, s.shortcut);
  const int parts = kNormConvWarps / (p.config.block_m / (16 * tiles));
  const int steps = p.slice_channels * element / kStepBytes * (s.taps + s.shortcut);
  const int chunk_steps = kChunkFragments / tiles;
  const int chunks = ((steps + parts - 1) / parts + chunk_steps - 1) / chunk_steps;
  p.ring_chunks = std::min(chunks, kRingChunks);
  p.input_offset = kNormConvWarps * p.ring_chunks * kChunkBytes;
  const size_t input =
      size_t{1} * p.layout.pitch * (p.layout.halo + p.config.block_rows * p.layout.period);
  const size_t sums =
      sizeof(float) * p.config.n_tiles * 8 * (p.config.block_m + 4) * parts * (1 + s.shortcut);
  *shared_bytes = std::max(p.input_offset + input, sums);
  return p;
}

bool NormConvSourceSupports(const NormConvSource& s, int length) {
  if (!IsPowerOfTwo(length)) return false;
  if (s.group_channels == 0) return true;
  const int packs = s.group_channels / kPackChannels;
  return s.group_channels % kPackChannels == 0 && IsPowerOfTwo(packs) && packs <= 32 &&
         packs * length <= 32 * kLanePacks;
}

bool NormConvSupports(Format format, const NormConvArgs& a) {
  const NormConvShape& s = a.shape;
  if (FormatBytes(format) != 2 || s.out_c % 32 != 0 || s.out_length > 128 ||
      !IsPowerOfTwo(s.out_length) || s.taps > 7)
    return false;
  if (a.source[0].channels + a.source[1].channels != s.in_c || s.in_c == 0) return false;
  for (const NormConvSource& source : a.source)
    if (!NormConvSourceSupports(source, s.in_length)) return false;
  const auto can_split = [&](int split) { return CanSplit(format, a, split); };
  constexpr int kSplits[] = {1, 2, 4, 8};
  if (std::none_of(std::begin(kSplits), std::end(kSplits), can_split)) return false;
  size_t shared_bytes = 0;
  PlanNormConv(format, a, &shared_bytes);
  return shared_bytes <= size_t{kMaxSharedBytesSm90};
}

}  // namespace mjp

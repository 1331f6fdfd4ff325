#include "kernels/cuda/encoder_kernel/plan.h"

#include <algorithm>

#include "kernels/cuda/primitives/gpu_traits.h"

namespace mjp::encoder_kernel {
namespace {

constexpr int kMostRows = 127;      // that Layer::rows holds
constexpr int kLargestSize = 1024;  // of a map, and of channels: positions fit width_inverse

int CeilDivide(int a, int b) { return (a + b - 1) / b; }

uint32_t Inverse(int y) { return (1u << kInverseBits) / y + 1; }

// Pairs of position tiles that a warp has registers for.
int MostPairs(int tiles) { return tiles == 1 ? 5 : 4; }

bool Takes(const Convolution& c, int kernel) {
  const ConvShape& s = c.shape;
  return s.kernel_h == kernel && s.kernel_w == kernel && s.pad_h == kernel / 2 &&
         s.pad_w == kernel / 2 && (s.stride == 1 || s.stride == 2) && s.in_c % kTapStep == 0 &&
         s.out_c % kTileChannels == 0 && s.phases == 1 && s.first_c == 0 && !s.upsample2x &&
         std::max({s.in_h, s.in_w, s.in_c, s.out_c}) <= kLargestSize && c.bias == nullptr &&
         c.groups > 0 && s.out_c % (8 * c.groups) == 0;
}

// Shares a layer out to the CTAs of a cluster and their warps; false where it does not go.
bool ShareOut(int group_channels, int ctas, Layer& l) {
  const int positions = l.out_h * l.out_w;
  l.width_inverse = Inverse(l.out_w);
  for (const int tiles : {1, 2}) {
    const int channels = tiles * kTileChannels, parts = l.out_c / channels;
    if (l.out_c % channels != 0 || channels % group_channels != 0 || parts > ctas) continue;
    const int rows = CeilDivide(l.out_h, ctas / parts), most = rows * l.out_w;
    if (rows > kMostRows || most * 2 * tiles > kMostVectors * kThreads) return false;
    l.tiles_log2 = static_cast<int8_t>(tiles - 1);
    l.parts = static_cast<int8_t>(parts);
    l.rows = static_cast<int8_t>(rows);
    l.step_inverse = Inverse(rows * l.stride);
    l.slices = static_cast<int8_t>(CeilDivide(l.out_h, rows));
    l.group_vectors = static_cast<int8_t>(group_channels / 8);
    const int pairs = CeilDivide(std::min(most, positions), kTilePositions);
    while (CeilDivide(pairs, l.NSplit()) > MostPairs(tiles)) ++l.n_split_log2;
    l.pairs = static_cast<int8_t>(CeilDivide(pairs, l.NSplit()));
    return l.NSplit() <= kWarps;
  }
  return false;
}

// Adds a convolution; false where it does not go.
bool Add(const Convolution& c, int ctas, Args& args, Layer l) {
  const ConvShape& s = c.shape;
  if (args.layer_count == kMostLayers || !Takes(c, s.kernel_h)) return false;
  const auto as_int16 = [](int value) { return static_cast<int16_t>(value); };
  l.weight = c.weight, l.scale = c.scale, l.shift = c.shift;
  l.in_h = as_int16(s.in_h), l.in_w = as_int16(s.in_w), l.in_c = as_int16(s.in_c);
  l.out_h = as_int16(s.out_h), l.out_w = as_int16(s.out_w), l.out_c = as_int16(s.out_c);
  l.kernel = static_cast<int8_t>(s.kernel_h), l.stride = static_cast<int8_t>(s.stride);
  l.channels_inverse = Inverse(s.in_c / kTapStep);
  l.chunks = as_int16(CeilDivide(s.K(), kChunkK));
  if (!ShareOut(s.out_c / c.groups, ctas, l)) return false;
  args.layers[args.layer_count++] = l;
  return true;
}

// Whether `shortcut` reads and makes maps of the same sizes as the first convolution does.
bool Alike(const ConvShape& shortcut, const ConvShape& first) {
  return shortcut.stride == first.stride && shortcut.in_c == first.in_c &&
         shortcut.out_c == first.out_c;
}

// Whether the inputs of two layers lie alike in shared memory, border and all.
bool SameInput(const Layer& a, const Layer& b) {
  return a.in_h == b.in_h && a.in_w == b.in_w && a.in_c == b.in_c && a.stride == b.stride &&
         a.rows == b.rows && a.parts == b.parts;
}

bool Add(const Block& block, int ctas, Args& args) {
  const ConvShape &first = block.first.shape, &second = block.second.shape;
  if (first.kernel_h != 3 || second.kernel_h != 3 || second.stride != 1) return false;
  if (block.shortcut) {
    Layer shortcut;
    shortcut.is_shortcut = true;
    if (block.shortcut->shape.kernel_h != 1 || !Alike(block.shortcut->shape, first) ||
        !Add(*block.shortcut, ctas, args, shortcut))
      return false;
  } else if (first.stride != 1 || first.in_c != first.out_c) {
    return false;
  }
  Layer one, two;
  one.relu = two.relu = two.adds_residual = true;
  one.reads_residual = !block.shortcut;
  if (!Add(block.first, ctas, args, one) || !Add(block.second, ctas, args, two)) return false;
  // a vector of the map is the same thread's in all layers of a block
  const Layer *last = &args.layers[args.layer_count - 1], *before = last - 1;
  if (last->tiles_log2 != before->tiles_log2) return false;
  return !block.shortcut || before[-1].tiles_log2 == last->tiles_log2;
}

}  // namespace

std::optional<Args> Plan(const Encoder& encoder, int ctas, int shared_bytes) {
  Args args;
  args.ctas = ctas;
  if (encoder.stem) {
    Layer stem;
    stem.relu = true;
    if (encoder.stem->shape.kernel_h != 3 || !Add(*encoder.stem, ctas, args, stem))
      return std::nullopt;
  }
  for (const Block& block : encoder.blocks)
    if (!Add(block, ctas, args)) return std::nullopt;
  int input = 0, sums = 0;
  for (int i = 0; i < args.layer_count; ++i) {
    Layer& l = args.layers[i];
    l.clears_border = i == 0 || !SameInput(args.layers[i - 1], l);
    const int in_rows = (l.rows - 1) * l.stride + 3;
    input = std::max(input, in_rows * RowPixels(l) * PixelBytes(l));
    const int positions = l.pairs * l.NSplit() * kTilePositions;
    if (l.rows * l.out_w * 2 * l.Tiles() > kFewVectors * kThreads)
      args.thread_vectors = kMostVectors;
    sums = std::max(sums, l.KSplit() * positions * SumPitch(l.Tiles()) * 4);
  }
  args.shared.input = kWarps * kRingChunks * kChunkBytes;
  args.shared.sums = args.shared.input + input;
  args.shared.end = args.shared.sums + sums;
  if (args.layer_count == 0 || args.shared.end + kTableBytes > shared_bytes) return std::nullopt;
  return args;
}

std::optional<Args> PlanHere(Format format, const Encoder& encoder, int pictures) {
  if (GpuTraits::Current().LargestCluster() < kMostCtas) return std::nullopt;
  for (const int ctas : {kMostCtas, kMostCtas / 2}) {
    std::optional<Args> args = Plan(encoder, ctas, GpuTraits::Current().shared_bytes);
    if (!args || pictures > 2 * ClustersAtOnce(format, *args)) continue;
    args->pictures = pictures;
    return args;
  }
  return std::nullopt;
}

}  // namespace mjp::encoder_kernel

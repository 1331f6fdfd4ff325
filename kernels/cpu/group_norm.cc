#include "kernels/cpu/group_norm.h"

#include "kernels/cpu/simd.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr int kSpan = 64;  // groups smaller than this are worked on several at a time

// Per channel of a span: y * scale + shift is the normalisation, film_scale and film_shift follow.
struct Affine {
  static constexpr int kSize = kMaxGroupChannels + kLanes;  // lanes past the last are computed too
  float scale[kSize], shift[kSize], film_scale[kSize], film_shift[kSize];
};

// sum[c] = sum over map n of (y[c0 + c] - center[c])^Power, Power 1 or 2, c < count. Four sums side
// by side, so that rounding errors grow with a quarter of the positions.
template <int Power>
void ChannelSums(const Features& y, int n, int c0, int count, const float* center, float* sum) {
  int c = 0;
  for (; c + kLanes <= count; c += kLanes) {
    Packet sums[4] = {Broadcast(0), Broadcast(0), Broadcast(0), Broadcast(0)};
    const Packet middle = Load(center + c);
    for (int h = 0; h < y.height; ++h) {
      const float* row = y.At(n, h, 0) + c0 + c;
      for (int w = 0; w < y.width; ++w, row += y.pitch) {
        const Packet d = simd::psub(Load(row), middle);
        sums[w & 3] = Power == 1 ? simd::padd(sums[w & 3], d) : Fma(d, d, sums[w & 3]);
      }
    }
    Store(sum + c, simd::padd(simd::padd(sums[0], sums[1]), simd::padd(sums[2], sums[3])));
  }
  for (; c < count; ++c) {
    float sums[4] = {};
    for (int h = 0; h < y.height; ++h) {
      const float* row = y.At(n, h, 0) + c0 + c;
      for (int w = 0; w < y.width; ++w, row += y.pitch) {
        const float d = *row - center[c];
        sums[w & 3] = Power == 1 ? sums[w & 3] + d : __builtin_fmaf(d, d, sums[w & 3]);
      }
    }
    sum[c] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

// Sets scale and shift of channels [c0, c0 + count), which are whole groups of `size` channels.
void NormAffine(const GroupNormArgs& args, int n, int c0, int count, int size, Affine* affine) {
  const double elements = double(size) * args.y.height * args.y.width;
  float* center = affine->film_scale;  // free until the FiLM terms come
  float* sums = affine->film_shift;
  for (int c = 0; c < count; ++c) center[c] = 0;
  ChannelSums<1>(args.y, n, c0, count, center, sums);
  for (int g = 0; g < count; g += size) {
    double mean = 0;
    for (int c = g; c < g + size; ++c) mean += sums[c];
    for (int c = g; c < g + size; ++c) center[c] = static_cast<float>(mean / elements);
  }
  ChannelSums<2>(args.y, n, c0, count, center, sums);
  for (int g = 0; g < count; g += size) {
    double variance = 0;
    for (int c = g; c < g + size; ++c) variance += sums[c];
    const float deviation = __builtin_sqrtf(static_cast<float>(variance / elements) + kEpsilon);
    for (int c = g; c < g + size; ++c) {
      affine->scale[c] = args.weight[c0 + c] / deviation;
      affine->shift[c] = args.bias[c0 + c] - center[c] * affine->scale[c];
    }
  }
}

void FilmAffine(const FilmArgs& film, int n, int c0, int count, Affine* affine) {
  const float* step = film.step_table + int64_t{film.step[n]} * film.pitch + c0;
  const float* cond = film.cond + int64_t{film.row[n]} * film.pitch + c0;
  const int bias = film.bias_offset;
  for (int c = 0; c < count; ++c) {
    affine->film_scale[c] = bias == 0 ? 1.0f : step[c] + cond[c];
    affine->film_shift[c] = step[bias + c] + cond[bias + c];
  }
}

template <Activation kActivation>
Packet Activate(const Packet& v) {
  if constexpr (kActivation == Activation::kMish) return Mish(v);
  // the order of the operands lets NaN pass
  if constexpr (kActivation == Activation::kRelu) return Max(v, Broadcast(0.0f));
  return v;
}

// The layer for one packet of channels of one position.
template <Activation kActivation>
Packet Element(const GroupNormArgs& args, const float* affine_scale, const float* affine_shift,
               const float* film_scale, const float* film_shift, Packet v, const Packet& residual) {
  if (args.groups > 0) v = Fma(v, Load(affine_scale), Load(affine_shift));
  if (args.residual_first) v = simd::padd(v, residual);
  v = Activate<kActivation>(v);
  if (args.film.step_table != nullptr) v = Fma(v, Load(film_scale), Load(film_shift));
  return args.residual_first ? v : simd::padd(v, residual);
}

template <Activation kActivation>
void Apply(const GroupNormArgs& args, int n, int c0, int count, const Affine& affine) {
  const Features& y = args.y;
  const Features& residual = args.residual;
  for (int h = 0; h < y.height; ++h) {
    for (int w = 0; w < y.width; ++w) {
      float* row = y.At(n, h, w) + c0;
      const float* other = residual.data == nullptr ? nullptr : residual.At(n, h, w) + c0;
      int c = 0;
      for (; c + kLanes <= count; c += kLanes) {
        const Packet r = other == nullptr ? Broadcast(0.0f) : Load(other + c);
        Store(row + c,
              Element<kActivation>(args, affine.scale + c, affine.shift + c, affine.film_scale + c,
                                   affine.film_shift + c, Load(row + c), r));
      }
      if (c == count) continue;
      float value[kLanes] = {}, rest[kLanes] = {};
      for (int i = c; i < count; ++i) value[i - c] = row[i];
      for (int i = c; other != nullptr && i < count; ++i) rest[i - c] = other[i];
      Store(value,
            Element<kActivation>(args, affine.scale + c, affine.shift + c, affine.film_scale + c,
                                 affine.film_shift + c, Load(value), Load(rest)));
      for (int i = c; i < count; ++i) row[i] = value[i - c];
    }
  }
}

}  // namespace

void Normalize(const GroupNormArgs& args, const Block& block) {
  const int size = args.groups > 0 ? args.y.channels / args.groups : 1;
  const int span = size >= kSpan ? size : kSpan / size * size;
  Affine affine;
  for (int n = block.batch_begin; n < block.batch_end; ++n) {
    for (int c0 = block.channel_begin; c0 < block.channel_end; c0 += span) {
      const int left = block.channel_end - c0;
      const int count = left < span ? left : span;
      for (int c = count; c < count + kLanes; ++c) {
        affine.scale[c] = affine.shift[c] = affine.film_scale[c] = affine.film_shift[c] = 0;
      }
      if (args.groups > 0) NormAffine(args, n, c0, count, size, &affine);
      if (args.film.step_table != nullptr) FilmAffine(args.film, n, c0, count, &affine);
      switch (args.activation) {
        case Activation::kNone:
          Apply<Activation::kNone>(args, n, c0, count, affine);
          break;
        case Activation::kRelu:
          Apply<Activation::kRelu>(args, n, c0, count, affine);
          break;
        case Activation::kMish:
          Apply<Activation::kMish>(args, n, c0, count, affine);
          break;
      }
    }
  }
}

}  // namespace mjp::cpu::MJP_ISA

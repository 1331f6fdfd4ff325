#include "kernels/cpu/transformer/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/product/product.h"
#include "kernels/cpu/transformer/softmax.h"

namespace mjp::cpu {
namespace {

constexpr int kQueryTile = 64;        // whose scores stay in cache
constexpr uintptr_t kAlignment = 64;  // of packed weights, in bytes

int RoundUp(int size, int panel) { return (size + panel - 1) / panel * panel; }

// Panels of weights (d, key) = k[key][d]: scores are the product of the queries with them.
void PackKeys(const float* k, int64_t pitch, int keys, int head_size, int panel, float* packed) {
  for (int first = 0; first < keys; first += panel) {
    float* out = packed + int64_t{first} * head_size;
    const int count = std::min(panel, keys - first);
    for (int i = 0; i < count; ++i) {
      const float* row = k + (first + i) * pitch;
      for (int d = 0; d < head_size; ++d) out[int64_t{d} * panel + i] = row[d];
    }
    for (int i = count; i < panel; ++i) {
      for (int d = 0; d < head_size; ++d) out[int64_t{d} * panel + i] = 0;
    }
  }
}

// Panels of weights (key, d) = v[key][d].
void PackValues(const float* v, int64_t pitch, int keys, int head_size, int panel, float* packed) {
  for (int first = 0; first < head_size; first += panel) {
    const int count = std::min(panel, head_size - first);
    for (int i = 0; i < keys; ++i, packed += panel) {
      std::copy_n(v + i * pitch + first, count, packed);
      std::fill(packed + count, packed + panel, 0.0f);
    }
  }
}

// y (rows, channels) = x (rows, depth) weights
void Multiply(const float* x, int64_t x_pitch, int depth, const float* weights, int rows,
              int channels, float* y, int64_t y_pitch) {
  ProductArgs product{.columns = 1};
  product.y = {.data = y,
               .batch = rows,
               .width = 1,
               .channels = channels,
               .pitch = static_cast<int>(y_pitch)};
  product.x = x;
  product.x_batch = x_pitch;
  product.segment_length = depth;
  product.weights = weights;
  Product(product, {0, rows, 0, channels});
}

struct Scratch {
  float *keys, *values, *scores;
  int score_pitch;
};

void Head(const AttentionArgs& args, int sequence, int head, const Scratch& scratch) {
  const int panel = PanelChannels(), column = head * args.head_size;
  const auto at = [&](const TokenRows& rows) { return rows.data + sequence * rows.batch + column; };
  PackKeys(at(args.k), args.k.pitch, args.keys, args.head_size, panel, scratch.keys);
  PackValues(at(args.v), args.v.pitch, args.keys, args.head_size, panel, scratch.values);
  const float scale = 1.0f / std::sqrt(static_cast<float>(args.head_size));
  for (int first = 0; first < args.queries; first += kQueryTile) {
    const int rows = std::min(kQueryTile, args.queries - first);
    Multiply(at(args.q) + first * args.q.pitch, args.q.pitch, args.head_size, scratch.keys, rows,
             args.keys, scratch.scores, scratch.score_pitch);
    for (int r = 0; r < rows; ++r) {
      float* row = scratch.scores + int64_t{r} * scratch.score_pitch;
      const int seen = args.causal ? std::min(first + r + 1, args.keys) : args.keys;
      Softmax(row, seen, scale);
      std::fill(row + seen, row + args.keys, 0.0f);
    }
    Multiply(scratch.scores, scratch.score_pitch, args.keys, scratch.values, rows, args.head_size,
             args.out + sequence * args.out_batch + first * args.out_pitch + column,
             args.out_pitch);
  }
}

}  // namespace

size_t AttentionScratch(const AttentionArgs& args) {
  const int panel = PanelChannels();
  return kAlignment / sizeof(float) + size_t{1} * RoundUp(args.keys, panel) * args.head_size +
         size_t{1} * RoundUp(args.head_size, panel) * args.keys +
         size_t{kQueryTile} * RoundUp(args.keys, panel);
}

void Attention(const AttentionArgs& args, int begin, int end, float* scratch) {
  const int panel = PanelChannels();
  while (reinterpret_cast<uintptr_t>(scratch) % kAlignment != 0) ++scratch;
  Scratch parts{.keys = scratch, .values = {}, .scores = {}, .score_pitch = 0};
  parts.score_pitch = RoundUp(args.keys, panel);
  parts.values = parts.keys + size_t{1} * parts.score_pitch * args.head_size;
  parts.scores = parts.values + size_t{1} * RoundUp(args.head_size, panel) * args.keys;
  for (int part = begin; part < end; ++part) {
    Head(args, part / args.heads, part % args.heads, parts);
  }
}

}  // namespace mjp::cpu

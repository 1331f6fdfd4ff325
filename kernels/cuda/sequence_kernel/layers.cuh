#ifndef KERNELS_CUDA_SEQUENCE_KERNEL_LAYERS_CUH_
#define KERNELS_CUDA_SEQUENCE_KERNEL_LAYERS_CUH_

#include "kernels/cuda/sequence_kernel/attend.cuh"
#include "kernels/cuda/sequence_kernel/cta.cuh"
#include "kernels/cuda/transformer/token_activation.cuh"

// The halves of a block, and the norm between them. A CTA has the columns of its heads, and its
// share of the hidden layer: what it makes of them it reads again itself. What it adds to the
// residual stream are partial sums of all columns, which go to the CTA that has the token.

namespace mjp::sequence_kernel {

// Rows of the tables of terms that this pass reads.
struct TermRows {
  const float *of_time, *of_condition;
};

// What the next norm reads of the terms, `kTerms * width` values: on their way into registers while
// a layer multiplies, all of them together, then stored in shared memory.
template <int kCtas>
class NextTerms {
 public:
  static constexpr int kWidth = kCtas * kCtaColumns;
  // `gate` and `shift` count terms of all blocks; the scale is behind the shift. Which of them are
  // read is the norm's choice.
  __device__ __forceinline__ NextTerms(const TermRows& terms, int gate, int shift,
                                       const float* bias) {
#pragma unroll
    for (int i = 0; i < kCtas; ++i) {
      const int at = Place(i), vector = at / kWidth, column = at % kWidth;
      const int term = (vector == 0 ? gate : shift + vector - 1) * kWidth + column;
      const bool is_bias = vector == kTerms - 1;
      first_[i] = LoadNow(is_bias ? bias + column : terms.of_time + term);
      second_[i] = LoadNow(is_bias ? bias + column : terms.of_condition + term);
    }
  }
  __device__ __forceinline__ void Store(float* to) const {
#pragma unroll
    for (int i = 0; i < kCtas; ++i) {
      const bool is_bias = Place(i) / kWidth == kTerms - 1;
      to[Place(i)] = is_bias ? first_[i] : first_[i] + second_[i];
    }
  }

 private:
  static_assert(kTerms * kCtaColumns == kThreads);
  __device__ static __forceinline__ int Place(int i) {
    return static_cast<int>(threadIdx.x) + i * kThreads;
  }
  float first_[kCtas], second_[kCtas];
};

// Two neighbours of each tile of this warp: the bias of its columns.
template <int kOut>
__device__ __forceinline__ void LoadBias(float2 (&bias)[kOut], const float* from) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
#pragma unroll
  for (int n = 0; n < kOut; ++n)
    bias[n] =
        *reinterpret_cast<const float2*>(from + (warp * kOut + n) * kGroupOut + 2 * (lane & 3));
}

// q, k and v of this CTA's heads into shared memory, q and k turned. Their columns are in such an
// order that both of a pair which turns stand next to each other.
template <Format F, int kCtas, int kTiles>
__device__ __forceinline__ void MakeQkv(const Cta<kCtas, kTiles>& cta, int block,
                                        WeightPipeline& weights) {
  constexpr int kOut = kQkvColumns / kGroupOut / kWarps;
  using T = Storage<F>;
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  float2 bias[kOut];
  LoadBias(bias,
           cta.Biases(block) + kCtas * 2 * kCtaColumns + cta.rank * (kQkvColumns + kHiddenColumns));
  float acc[kTiles][kOut][4] = {};
  Multiply<F, kCtas>(acc, SharedAddress(cta.shared + cta.at.input), cta.kInputPitch, weights);
  const auto* turns = reinterpret_cast<const float2*>(cta.shared + cta.at.turns);
  const int half = cta.head / 2;  // a power of two
#pragma unroll
  for (int n = 0; n < kOut; ++n) {
    const int column = (warp * kOut + n) * kGroupOut + 2 * (lane & 3);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int token = m * kTokenTile + (lane >> 2) + r * 8;
        float x = acc[m][n][2 * r] + bias[n].x, y = acc[m][n][2 * r + 1] + bias[n].y;
        if (column < 2 * kCtaColumns) {
          const float2 turn = turns[token * half + (column / 2 & (half - 1))];
          const float turned = x * turn.x - y * turn.y;
          y = y * turn.x + x * turn.y;
          x = turned;
        }
        *reinterpret_cast<uint32_t*>(cta.shared + cta.at.qkv + token * kQkvPitch + column * 2) =
            PackTwo(T{}, x, y);
      }
    }
  }
}

// This CTA's columns of the hidden layer into shared memory.
template <Format F, int kCtas, int kTiles>
__device__ __forceinline__ void MakeHidden(const Cta<kCtas, kTiles>& cta, int block,
                                           WeightPipeline& weights) {
  constexpr int kOut = kHiddenColumns / kGroupOut / kWarps;
  using T = Storage<F>;
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  float2 bias[kOut];
  LoadBias(bias, cta.Biases(block) + kCtas * 2 * kCtaColumns +
                     cta.rank * (kQkvColumns + kHiddenColumns) + kQkvColumns);
  float acc[kTiles][kOut][4] = {};
  Multiply<F, kCtas>(acc, SharedAddress(cta.shared + cta.at.input), cta.kInputPitch, weights);
#pragma unroll
  for (int n = 0; n < kOut; ++n) {
    const int column = (warp * kOut + n) * kGroupOut + 2 * (lane & 3);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int token = m * kTokenTile + (lane >> 2) + r * 8;
        const float x = acc[m][n][2 * r] + bias[n].x, y = acc[m][n][2 * r + 1] + bias[n].y;
        *reinterpret_cast<uint32_t*>(cta.shared + cta.at.hidden + token * kHiddenPitch +
                                     column * 2) = PackTwo(T{}, GeluTanhFast(x), GeluTanhFast(y));
      }
    }
  }
}

// Multiplies what this CTA has made, 64 kSteps columns at `from`, and sends the partial sums of
// all columns to the CTAs that have the tokens.
template <Format F, int kSteps, int kCtas, int kTiles>
__device__ __forceinline__ void SendSums(const Cta<kCtas, kTiles>& cta, int from, int pitch,
                                         WeightPipeline& weights) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  float acc[kTiles][kCtas][4] = {};
  Multiply<F, kSteps>(acc, SharedAddress(cta.shared + from), pitch, weights);
  const uint32_t sums = SharedAddress(cta.shared + cta.at.sums);
  // two lanes that are neighbours swap halves, so that each sends 16 bytes of one of their two rows
  const int odd = lane & 1;
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
    const int token = m * kTokenTile + (lane >> 2) + odd * 8;
    const int owner = token / cta.kEach, row = cta.rank * cta.kEach + token % cta.kEach;
    const uint32_t to =
        InCta(sums + row * cta.kSumPitch + (warp * kCtas * kGroupOut + 2 * (lane & 2)) * 4, owner);
#pragma unroll
    for (int n = 0; n < kCtas; ++n) {
      const float(&v)[4] = acc[m][n];
      const float x = __shfl_xor_sync(0xffffffffu, odd ? v[0] : v[2], 1);
      const float y = __shfl_xor_sync(0xffffffffu, odd ? v[1] : v[3], 1);
      if (token < cta.a.shape.length)
        StoreInCta(to + n * kGroupOut * 4,
                   odd ? make_float4(x, y, v[2], v[3]) : make_float4(v[0], v[1], x, y));
    }
  }
}

// A token's residual stream in a warp's registers: four neighbours of a lane, 128 apart.
template <int kCtas>
struct TokenValues {
  static constexpr int kWidth = kCtas * kCtaColumns, kFours = (kWidth + 127) / 128;
  float4 v[kFours];

  __device__ static __forceinline__ int Column(int i) {
    return i * 128 + static_cast<int>(threadIdx.x & 31) * 4;
  }
  // Narrower than a warp's access: some lanes have nothing.
  __device__ static __forceinline__ bool Here(int i) {
    return kWidth % 128 == 0 || Column(i) < kWidth;
  }
};

// x of token `t` of this CTA; with `kSum` after adding gate (sums + bias), which it keeps.
template <bool kSum, int kCtas, int kTiles>
__device__ __forceinline__ TokenValues<kCtas> LoadToken(const Cta<kCtas, kTiles>& cta, int t) {
  using Values = TokenValues<kCtas>;
  constexpr int kWidth = Values::kWidth;
  Values token;
  const float* terms = cta.Floats(cta.at.terms);
#pragma unroll
  for (int i = 0; i < Values::kFours; ++i) {
    token.v[i] = make_float4(0, 0, 0, 0);
    if (!Values::Here(i)) continue;
    const int column = Values::Column(i);
    auto* x = reinterpret_cast<float4*>(cta.Floats(cta.at.x) + t * kWidth + column);
    float4 v = *x;
    if (kSum) {
      float4 s = *reinterpret_cast<const float4*>(terms + 3 * kWidth + column);
#pragma unroll
      for (int from = 0; from < kCtas; ++from) {
        const float4 part = *reinterpret_cast<const float4*>(
            cta.shared + cta.at.sums + (from * cta.kEach + t) * cta.kSumPitch + column * 4);
        s.x += part.x, s.y += part.y, s.z += part.z, s.w += part.w;
      }
      const float4 gate = *reinterpret_cast<const float4*>(terms + column);
      v.x = fmaf(gate.x, s.x, v.x), v.y = fmaf(gate.y, s.y, v.y);
      v.z = fmaf(gate.z, s.z, v.z), v.w = fmaf(gate.w, s.w, v.w);
      *x = v;
    }
    token.v[i] = v;
  }
  return token;
}

// The token's norm with its terms, as the next layer reads it, to all CTAs.
template <Format F, int kCtas, int kTiles>
__device__ __forceinline__ void SendNorm(const Cta<kCtas, kTiles>& cta, int t,
                                         const TokenValues<kCtas>& token) {
  using Values = TokenValues<kCtas>;
  using T = Storage<F>;
  constexpr int kWidth = Values::kWidth;
  float sum = 0, squares = 0;
#pragma unroll
  for (int i = 0; i < Values::kFours; ++i)
    sum += token.v[i].x + token.v[i].y + token.v[i].z + token.v[i].w;
  const float mean = WarpSum(sum) / kWidth;
#pragma unroll
  for (int i = 0; i < Values::kFours; ++i) {
    if (!Values::Here(i)) continue;
    const float x = token.v[i].x - mean, y = token.v[i].y - mean;
    const float z = token.v[i].z - mean, w = token.v[i].w - mean;
    squares += x * x + y * y + z * z + w * w;
  }
  const float scale = 1.0f / sqrtf(WarpSum(squares) / kWidth + cta.a.epsilon);
  const float* terms = cta.Floats(cta.at.terms);
  const uint32_t row = SharedAddress(cta.shared + cta.at.input) + (cta.first + t) * cta.kInputPitch;
#pragma unroll
  for (int i = 0; i < Values::kFours; ++i) {
    if (!Values::Here(i)) continue;
    const int column = Values::Column(i);
    const float4 shift = *reinterpret_cast<const float4*>(terms + kWidth + column);
    const float4 factor = *reinterpret_cast<const float4*>(terms + 2 * kWidth + column);
    const float4& v = token.v[i];
    const uint32_t low = PackTwo(T{}, fmaf((v.x - mean) * scale, 1.0f + factor.x, shift.x),
                                 fmaf((v.y - mean) * scale, 1.0f + factor.y, shift.y));
    const uint32_t high = PackTwo(T{}, fmaf((v.z - mean) * scale, 1.0f + factor.z, shift.z),
                                  fmaf((v.w - mean) * scale, 1.0f + factor.w, shift.w));
#pragma unroll
    for (int to = 0; to < kCtas; ++to) StoreInCta(InCta(row + column * 2, to), low, high);
  }
}

// The norm of this CTA's tokens to all CTAs, and a barrier; with `kSum` after adding the sums.
template <Format F, bool kSum, int kCtas, int kTiles>
__device__ __forceinline__ void NormTokens(const Cta<kCtas, kTiles>& cta) {
  for (int t = threadIdx.x / 32; t < cta.count; t += kWarps)
    SendNorm<F>(cta, t, LoadToken<kSum>(cta, t));
  ClusterBarrier();
}

}  // namespace mjp::sequence_kernel

#endif  // KERNELS_CUDA_SEQUENCE_KERNEL_LAYERS_CUH_

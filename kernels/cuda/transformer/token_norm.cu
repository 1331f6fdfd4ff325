// Residual sum and LayerNorm, a warp for each row: the row stays in registers, four neighbours of a
// lane in one access, and both sums of the norm are trees over the warp. Two passes over the
// registers (mean, then squares of the differences), as the definition has it. Bound by launch for
// few rows, which run this code once: so what few norms need is compiled by itself, or skipped. By
// memory for many: 14 bytes of an element in 16-bit formats.

#include <string>

#include "base/error.h"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/transformer/token_norm.cuh"

namespace mjp {
namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kFour = 4, kLaneFours = 32 * kFour;  // elements of a warp's access

__device__ __forceinline__ float4 Four(const float* at) {
  return *reinterpret_cast<const float4*>(at);
}

// A lane's columns of a row: kFours times four neighbours, kLaneFours apart. Calls each(i, column)
// for those that are there.
template <int kFours, typename Each>
__device__ __forceinline__ void ForColumns(int width, const Each& each) {
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    if (i * kLaneFours >= width) break;
    const int column = i * kLaneFours + (static_cast<int>(threadIdx.x) & 31) * kFour;
    if (column < width) each(i, column);
  }
}

// The sums of both tables' terms for a row.
struct RowTerms {
  const float *of_condition = nullptr, *of_time = nullptr;

  __device__ __forceinline__ RowTerms(const TokenTerms& t, int row) {
    const int sequence = row / t.rows_per_sequence;
    of_condition = t.of_condition + sequence / t.sequences_per_condition * t.pitch;
    of_time = t.of_time + t.time[sequence] * t.pitch;
  }
  __device__ __forceinline__ float4 At(int column) const {
    const float4 c = Four(of_condition + column), s = Four(of_time + column);
    return make_float4(c.x + s.x, c.y + s.y, c.z + s.z, c.w + s.w);
  }
};

// v = x + gate branch
template <typename T, int kFours, bool kModulated>
__device__ __forceinline__ void LoadRow(const TokenNormArgs& a, int row, float4 (&v)[kFours]) {
  const int x_row = a.x_rows > 0 ? row % a.x_rows : row;
  const float* const x = a.x + x_row * (a.x_pitch > 0 ? a.x_pitch : a.width);
  ForColumns<kFours>(a.width, [&](int i, int column) { v[i] = Four(x + column); });
  if (a.branch == nullptr) return;
  const T* const branch = static_cast<const T*>(a.branch) + static_cast<size_t>(row) * a.width;
  const auto add = [&](const auto& gate_at) {
    ForColumns<kFours>(a.width, [&](int i, int column) {
      const float4 b = UnpackFour(*reinterpret_cast<const Pack<T, 4>*>(branch + column));
      const float4 gate = gate_at(column);
      v[i].x = fmaf(gate.x, b.x, v[i].x), v[i].y = fmaf(gate.y, b.y, v[i].y);
      v[i].z = fmaf(gate.z, b.z, v[i].z), v[i].w = fmaf(gate.w, b.w, v[i].w);
    });
  };
  if constexpr (kModulated) {
    const RowTerms terms(a.terms, row);
    add([&](int column) { return terms.At(a.terms.gate + column); });
  } else {
    add([](int) { return make_float4(1, 1, 1, 1); });
  }
}

// v = (v - mean) / deviation
template <int kFours>
__device__ __forceinline__ void Normalize(const TokenNormArgs& a, float4 (&v)[kFours]) {
  const float each = 1.0f / static_cast<float>(a.width);
  float sum = 0, squares = 0;
  ForColumns<kFours>(a.width, [&](int i, int) { sum += v[i].x + v[i].y + v[i].z + v[i].w; });
  const float mean = WarpSum(sum) * each;
  ForColumns<kFours>(a.width, [&](int i, int) {
    v[i].x -= mean, v[i].y -= mean, v[i].z -= mean, v[i].w -= mean;
    squares += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
  });
  const float scale = rsqrtf(WarpSum(squares) * each + a.epsilon);
  ForColumns<kFours>(a.width, [&](int i, int) {
    v[i].x *= scale, v[i].y *= scale, v[i].z *= scale, v[i].w *= scale;
  });
}

// A norm's own weights, in a lane's columns. No launch writes them: they are loaded while the
// kernel waits for the one before.
template <int kFours>
struct NormWeights {
  float4 weight[kFours], bias[kFours];

  __device__ __forceinline__ void Load(const float* weights, const float* biases, int width) {
    if (weights == nullptr) return;
    ForColumns<kFours>(width, [&](int i, int column) {
      weight[i] = Four(weights + column), bias[i] = Four(biases + column);
    });
  }
};

template <int kFours, bool kModulated>
__device__ __forceinline__ void Scale(const TokenNormArgs& a, int row,
                                      const NormWeights<kFours>& own, float4 (&v)[kFours]) {
  const auto scale = [&](const auto& weight_at, const auto& bias_at) {
    ForColumns<kFours>(a.width, [&](int i, int column) {
      const float4 w = weight_at(i, column), b = bias_at(i, column);
      v[i] = make_float4(fmaf(v[i].x, w.x, b.x), fmaf(v[i].y, w.y, b.y), fmaf(v[i].z, w.z, b.z),
                         fmaf(v[i].w, w.w, b.w));
    });
  };
  if constexpr (!kModulated)
    return scale([&](int i, int) { return own.weight[i]; },
                 [&](int i, int) { return own.bias[i]; });
  const RowTerms terms(a.terms, row);
  scale(
      [&](int, int column) {
        const float4 w = terms.At(a.terms.scale + column);
        return make_float4(1 + w.x, 1 + w.y, 1 + w.z, 1 + w.w);
      },
      [&](int, int column) { return terms.At(a.terms.shift + column); });
}

enum class Norms { kOwn, kModulated, kTwice };

// grid: rows / kWarps
template <typename T, int kFours, Norms kNorms>
__global__ void __launch_bounds__(kThreads) TokenNormKernel(const TokenNormArgs a) {
  constexpr bool kModulated = kNorms == Norms::kModulated;
  NormWeights<kFours> own, second;
  if constexpr (!kModulated) own.Load(a.weight, a.bias, a.width);
  if constexpr (kNorms == Norms::kTwice) second.Load(a.second_weight, a.second_bias, a.width);
  ReleaseSuccessor();
  WaitForPredecessor();
  const int row = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / 32);
  if (row >= a.rows) return;
  float4 v[kFours];
  LoadRow<T, kFours, kModulated>(a, row, v);
  const size_t first = static_cast<size_t>(row) * a.width;
  const auto store = [&](float* to) {
    if (to == nullptr) return;
    ForColumns<kFours>(a.width, [&](int i, int column) {
      *reinterpret_cast<float4*>(to + first + column) = v[i];
    });
  };
  store(a.sum);
  if (a.normalize) {
    Normalize<kFours>(a, v);
    Scale<kFours, kModulated>(a, row, own, v);
  }
  store(a.normed);
  if constexpr (kNorms == Norms::kTwice) {
    Normalize<kFours>(a, v);
    Scale<kFours, false>(a, row, second, v);
  }
  if (a.y == nullptr) return;
  ForColumns<kFours>(a.width, [&](int i, int column) {
    *reinterpret_cast<Pack<T, 4>*>(static_cast<T*>(a.y) + first + column) = PackFour<T>(v[i]);
  });
}

template <typename T, int kFours>
void LaunchColumns(const TokenNormArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.rows + kWarps - 1) / kWarps);
  shape.block = dim3(kThreads);
  const auto launch = [&](auto kernel) { Launch(kernel, shape, stream, "norm of tokens", a); };
  if (a.terms.of_condition != nullptr) return launch(TokenNormKernel<T, kFours, Norms::kModulated>);
  if (a.second_weight != nullptr) return launch(TokenNormKernel<T, kFours, Norms::kTwice>);
  launch(TokenNormKernel<T, kFours, Norms::kOwn>);
}

template <typename T>
void LaunchTyped(const TokenNormArgs& a, cudaStream_t stream) {
  if (a.width <= 4 * kLaneFours) return LaunchColumns<T, 4>(a, stream);
  if (a.width <= 8 * kLaneFours) return LaunchColumns<T, 8>(a, stream);
  LaunchColumns<T, 16>(a, stream);
}

}  // namespace

void LaunchTokenNorm(Format format, const TokenNormArgs& args, cudaStream_t stream) {
  if (args.width % 8 != 0 || args.width > 16 * kLaneFours)
    throw Unsupported("transformer of width " + std::to_string(args.width) +
                      ": the GPU kernels take multiples of 8 up to 2048; use the CPU backend");
  if (format == Format::kFp16) return LaunchTyped<__half>(args, stream);
  if (format == Format::kBf16) return LaunchTyped<__nv_bfloat16>(args, stream);
  LaunchTyped<float>(args, stream);
}

}  // namespace mjp

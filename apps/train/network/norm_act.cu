// Group norm + activation (+ FiLM, + residual) on channel-last tensors, forward and backward.
//
//   y = act((x - mean_g) * rstd_g * w_c + b_c [+ residual before a ReLU])
//   y = y * scale_nc + shift_nc [+ residual]                                  (Mish)
//
// One block holds one sample (S cells x C channels). A thread keeps 8 neighbouring channels (16
// bytes of bf16) and walks the cells, so that per-channel sums stay in registers; the second sweep
// finds the sample in the L2 cache. Bytes: forward reads x once and writes y once from device
// memory, backward reads x and dy and writes dx. Sums are float32 in a fixed order.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>

#include "apps/train/network/norm_act.h"

namespace mjp::app {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = 8;  // channels of a thread
constexpr int kMaxChannels = kThreads * kVector;
constexpr float kEpsilon = 1e-5f;

template <class T>
struct alignas(16) Pack {
  T values[kVector];
};

__device__ float ToFloat(float v) { return v; }
__device__ float ToFloat(__nv_bfloat16 v) { return __bfloat162float(v); }
template <class T>
__device__ T FromFloat(float v) {
  if constexpr (sizeof(T) == 2) return __float2bfloat16_rn(v);
  return v;
}

template <class T>
__device__ void Load(const T* from, float (&to)[kVector]) {
  const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(from);
#pragma unroll
  for (int i = 0; i < kVector; ++i) to[i] = ToFloat(pack.values[i]);
}

template <class T>
__device__ void Store(const float (&from)[kVector], T* to) {
  Pack<T> pack;
#pragma unroll
  for (int i = 0; i < kVector; ++i) pack.values[i] = FromFloat<T>(from[i]);
  *reinterpret_cast<Pack<T>*>(to) = pack;
}

struct Shape {
  int cells, channels, groups;  // of one sample
  int vectors, rows;            // channels / 8; cells that a block handles at once
};

template <class T>
struct Arguments {
  Shape shape;
  const T *x, *weight, *bias, *film, *residual;
  T* y;
  float *mean, *rstd;  // (N, groups)
  // backward only
  const T* dy;
  T *dx, *dfilm, *dresidual;
  float *dweight, *dbias;  // (N, C): summed over N afterwards
};

// Mish and its derivative: x tanh(softplus(x)) with e = exp(x).
__device__ float Mish(float x, float* slope) {
  if (x > 20) {
    *slope = 1;
    return x;
  }
  const float e = __expf(x), n = e * (e + 2), tanh_softplus = __fdividef(n, n + 2);
  *slope = tanh_softplus + x * (1 - tanh_softplus * tanh_softplus) * __fdividef(e, 1 + e);
  return x * tanh_softplus;
}

// Adds up each channel's partial sums of all rows; sums (C) holds the result for all threads.
__device__ void SumRows(const Shape& shape, int vector, int row, const float (&partial)[kVector],
                        float* scratch, float* sums) {
  __syncthreads();
  if (row < shape.rows) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      scratch[row * shape.channels + vector * kVector + i] = partial[i];
    }
  }
  __syncthreads();
  for (int c = threadIdx.x; c < shape.channels; c += kThreads) {
    float sum = 0;
    for (int r = 0; r < shape.rows; ++r) sum += scratch[r * shape.channels + c];
    sums[c] = sum;
  }
  __syncthreads();
}

template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads) ForwardKernel(Arguments<T> a) {
  const Shape shape = a.shape;
  __shared__ float scratch[kMaxChannels], sum[kMaxChannels], square[kMaxChannels];
  const int vector = threadIdx.x % shape.vectors, row = threadIdx.x / shape.vectors;
  const int64_t sample = blockIdx.x;
  const int64_t base = sample * shape.cells * shape.channels + vector * kVector;

  float partial_sum[kVector] = {}, partial_square[kVector] = {}, x[kVector];
  if (row < shape.rows) {
    for (int cell = row; cell < shape.cells; cell += shape.rows) {
      Load(a.x + base + int64_t{cell} * shape.channels, x);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        partial_sum[i] += x[i];
        partial_square[i] += x[i] * x[i];
      }
    }
  }
  SumRows(shape, vector, row, partial_sum, scratch, sum);
  SumRows(shape, vector, row, partial_square, scratch, square);

  // the groups' statistics take the place of the first sums
  const int per_group = shape.channels / shape.groups;
  const float count = static_cast<float>(per_group) * shape.cells;
  for (int g = threadIdx.x; g < shape.groups; g += kThreads) {
    float s = 0, q = 0;
    for (int c = g * per_group; c < (g + 1) * per_group; ++c) s += sum[c], q += square[c];
    const float mean = s / count;
    const float rstd = rsqrtf(fmaxf(q / count - mean * mean, 0.0f) + kEpsilon);
    scratch[g] = mean, scratch[shape.groups + g] = rstd;
    a.mean[sample * shape.groups + g] = mean;
    a.rstd[sample * shape.groups + g] = rstd;
  }
  __syncthreads();
  if (row >= shape.rows) return;

  float gain[kVector], offset[kVector], scale[kVector], shift[kVector];
  Load(a.weight + vector * kVector, gain);
  Load(a.bias + vector * kVector, offset);
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    const int g = (vector * kVector + i) / per_group;
    gain[i] *= scratch[shape.groups + g];
    offset[i] -= scratch[g] * gain[i];
  }
  if (a.film) {
    const T* film = a.film + sample * 2 * shape.channels + vector * kVector;
    Load(film, scale);
    Load(film + shape.channels, shift);
  }
  for (int cell = row; cell < shape.cells; cell += shape.rows) {
    const int64_t at = base + int64_t{cell} * shape.channels;
    float residual[kVector] = {};
    Load(a.x + at, x);
    if (a.residual) Load(a.residual + at, residual);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      float z = x[i] * gain[i] + offset[i], slope;
      if constexpr (kActivation == Activation::kRelu) {
        z = fmaxf(z + residual[i], 0.0f);
      } else {
        if constexpr (kActivation == Activation::kMish) z = Mish(z, &slope);
        if (a.film) z = z * scale[i] + shift[i];
        z += residual[i];
      }
      x[i] = z;
    }
    Store(x, a.y + at);
  }
}

// The gradient that reaches the norm's output z, and the activation's value for FiLM.
template <Activation kActivation>
__device__ float Slope(float dy, float z, float y, float scale, float* act) {
  *act = z;
  if constexpr (kActivation == Activation::kRelu) return y > 0 ? dy : 0;
  float slope = 1;
  if constexpr (kActivation == Activation::kMish) *act = Mish(z, &slope);
  return dy * scale * slope;
}

template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads) BackwardKernel(Arguments<T> a) {
  const Shape shape = a.shape;
  __shared__ float scratch[kMaxChannels], sum_dz[kMaxChannels], sum_dzx[kMaxChannels];
  const int vector = threadIdx.x % shape.vectors, row = threadIdx.x / shape.vectors;
  const bool active = row < shape.rows;
  const int per_group = shape.channels / shape.groups;
  const int64_t sample = blockIdx.x;
  const int64_t base = sample * shape.cells * shape.channels + vector * kVector;

  float weight[kVector], bias[kVector], scale[kVector], mean[kVector], rstd[kVector];
  Load(a.weight + vector * kVector, weight);
  Load(a.bias + vector * kVector, bias);
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    const int64_t g = sample * shape.groups + (vector * kVector + i) / per_group;
    mean[i] = a.mean[g], rstd[i] = a.rstd[g], scale[i] = 1;
  }
  if (a.film) Load(a.film + sample * 2 * shape.channels + vector * kVector, scale);

  float x[kVector], dy[kVector], y[kVector] = {};
  float dz_sum[kVector] = {}, dzx_sum[kVector] = {}, scale_sum[kVector] = {}, dy_sum[kVector] = {};
  for (int cell = row; active && cell < shape.cells; cell += shape.rows) {
    const int64_t at = base + int64_t{cell} * shape.channels;
    Load(a.x + at, x);
    Load(a.dy + at, dy);
    if constexpr (kActivation == Activation::kRelu) Load(a.y + at, y);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const float normed = (x[i] - mean[i]) * rstd[i];
      float act;
      const float dz =
          Slope<kActivation>(dy[i], normed * weight[i] + bias[i], y[i], scale[i], &act);
      dz_sum[i] += dz, dzx_sum[i] += dz * normed;
      scale_sum[i] += dy[i] * act, dy_sum[i] += dy[i];
    }
  }
  if (a.dfilm) {
    SumRows(shape, vector, row, scale_sum, scratch, sum_dz);
    SumRows(shape, vector, row, dy_sum, scratch, sum_dzx);
    T* dfilm = a.dfilm + sample * 2 * shape.channels;
    for (int c = threadIdx.x; c < shape.channels; c += kThreads) {
      dfilm[c] = FromFloat<T>(sum_dz[c]);
      dfilm[shape.channels + c] = FromFloat<T>(sum_dzx[c]);
    }
  }
  SumRows(shape, vector, row, dz_sum, scratch, sum_dz);
  SumRows(shape, vector, row, dzx_sum, scratch, sum_dzx);
  for (int c = threadIdx.x; c < shape.channels; c += kThreads) {
    a.dbias[sample * shape.channels + c] = sum_dz[c];
    a.dweight[sample * shape.channels + c] = sum_dzx[c];
  }
  const float count = static_cast<float>(per_group) * shape.cells;
  for (int g = threadIdx.x; g < shape.groups; g += kThreads) {
    float s = 0, q = 0;
    for (int c = g * per_group; c < (g + 1) * per_group; ++c) {
      const float w = ToFloat(a.weight[c]);
      s += w * sum_dz[c], q += w * sum_dzx[c];
    }
    scratch[g] = s / count, scratch[shape.groups + g] = q / count;
  }
  __syncthreads();
  for (int cell = row; active && cell < shape.cells; cell += shape.rows) {
    const int64_t at = base + int64_t{cell} * shape.channels;
    Load(a.x + at, x);
    Load(a.dy + at, dy);
    if constexpr (kActivation == Activation::kRelu) Load(a.y + at, y);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const int g = (vector * kVector + i) / per_group;
      const float normed = (x[i] - mean[i]) * rstd[i];
      float act;
      dy[i] = Slope<kActivation>(dy[i], normed * weight[i] + bias[i], y[i], scale[i], &act);
      x[i] = rstd[i] * (weight[i] * dy[i] - scratch[g] - normed * scratch[shape.groups + g]);
    }
    Store(x, a.dx + at);
    if (a.dresidual) Store(dy, a.dresidual + at);
  }
}

template <class T>
const T* Pointer(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<const T*>(tensor.const_data_ptr()) : nullptr;
}
template <class T>
T* MutablePointer(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.mutable_data_ptr()) : nullptr;
}

template <class T>
Arguments<T> MakeArguments(const NormActInput& input, const NormActForward& forward) {
  Arguments<T> a{};
  const int64_t channels = input.x.size(1);
  TORCH_CHECK(channels % kVector == 0 && channels <= kMaxChannels && channels % input.groups == 0,
              "NormAct: ", channels, " channels in ", input.groups, " groups are not supported");
  TORCH_CHECK(2 * input.groups <= kMaxChannels, "NormAct: too many groups");
  a.shape.cells = static_cast<int>(input.x.size(2) * input.x.size(3));
  a.shape.channels = static_cast<int>(channels);
  a.shape.groups = static_cast<int>(input.groups);
  a.shape.vectors = a.shape.channels / kVector;
  a.shape.rows = kThreads / a.shape.vectors;
  a.x = Pointer<T>(input.x);
  a.weight = Pointer<T>(input.weight);
  a.bias = Pointer<T>(input.bias);
  a.film = Pointer<T>(input.film);
  a.residual = Pointer<T>(input.residual);
  a.y = MutablePointer<T>(forward.y);
  a.mean = MutablePointer<float>(forward.mean);
  a.rstd = MutablePointer<float>(forward.rstd);
  return a;
}

// Calls run.template operator()<T, activation>() for the input's type and activation.
template <class Run>
void Dispatch(const NormActInput& input, const Run& run) {
  const auto with_type = [&]<class T>() {
    switch (input.activation) {
      case Activation::kNone:
        return run.template operator()<T, Activation::kNone>();
      case Activation::kRelu:
        return run.template operator()<T, Activation::kRelu>();
      case Activation::kMish:
        return run.template operator()<T, Activation::kMish>();
    }
  };
  if (input.x.scalar_type() == at::kBFloat16) {
    with_type.template operator()<__nv_bfloat16>();
  } else {
    TORCH_CHECK(input.x.scalar_type() == at::kFloat, "NormAct: float32 or bfloat16 only");
    with_type.template operator()<float>();
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

NormActForward NormActForwardCuda(const NormActInput& input) {
  const auto statistics = input.x.options().dtype(at::kFloat);
  const int64_t samples = input.x.size(0);
  NormActForward forward{at::empty_like(input.x), at::empty({samples, input.groups}, statistics),
                         at::empty({samples, input.groups}, statistics)};
  Dispatch(input, [&]<class T, Activation kActivation>() {
    const Arguments<T> arguments = MakeArguments<T>(input, forward);
    ForwardKernel<T, kActivation>
        <<<samples, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(arguments);
  });
  return forward;
}

NormActBackward NormActBackwardCuda(const NormActInput& input, const NormActForward& forward,
                                    const at::Tensor& dy) {
  const int64_t samples = input.x.size(0), channels = input.x.size(1);
  const auto partial = input.x.options().dtype(at::kFloat).memory_format(std::nullopt);
  const at::Tensor dweight = at::empty({samples, channels}, partial);
  const at::Tensor dbias = at::empty({samples, channels}, partial);
  NormActBackward backward;
  backward.dx = at::empty_like(input.x);
  if (input.film.defined()) backward.dfilm = at::empty_like(input.film);
  const bool relu = input.activation == Activation::kRelu;
  at::Tensor masked;
  if (input.residual.defined() && relu) masked = at::empty_like(input.x);
  Dispatch(input, [&]<class T, Activation kActivation>() {
    Arguments<T> arguments = MakeArguments<T>(input, forward);
    arguments.dy = Pointer<T>(dy);
    arguments.dx = MutablePointer<T>(backward.dx);
    arguments.dfilm = MutablePointer<T>(backward.dfilm);
    arguments.dresidual = MutablePointer<T>(masked);
    arguments.dweight = MutablePointer<float>(dweight);
    arguments.dbias = MutablePointer<float>(dbias);
    BackwardKernel<T, kActivation>
        <<<samples, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(arguments);
  });
  if (input.residual.defined()) backward.dresidual = relu ? masked : dy;
  backward.dweight = dweight.sum(0).to(input.weight.scalar_type());
  backward.dbias = dbias.sum(0).to(input.bias.scalar_type());
  return backward;
}

}  // namespace mjp::app

#ifndef KERNELS_CUDA_MEGAKERNEL_CTA_STATE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_CTA_STATE_CUH_

#include "kernels/cuda/megakernel/args.cuh"
#include "kernels/cuda/megakernel/exchange/tagged_value.cuh"
#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/cuda/primitives/device_math.cuh"

// What the functions of a CTA share, and what they compute for both roles.

namespace mjp::megakernel {

// What a CTA's functions share.
struct CtaState {
  const CommonArgs& a;
  float* x;  // shared: (rows, x_halo zeros, length * action_dim, zeros)
  // shared: weights of the first convolution, then of its 1x1 shortcut; of the head (action_dim,
  // channels), and its biases; those of the CTA's channels alone
  const float *first_weights, *head_weights, *head_bias;
  float2* moments;  // shared: each warp's sum and sum of squares of an output tile
  // Passes are counted in a launch from 1 (`pass` of the sampler), and over all launches as passes
  // before this one (`pass` of the layers). pass & 1 of all that ever ran, this one with them: tag
  // of the head's partial sums, and the activation buffer that this pass writes.
  uint32_t epoch;
  int* timesteps;  // shared: (rows)
  SpinWatchdog watchdog;

  __device__ __forceinline__ int XPitch() const { return a.length * a.action_dim + 2 * a.x_halo; }
  __device__ __forceinline__ float* X(int row) const { return x + row * XPitch() + a.x_halo; }
};

// In shared memory of `layout`, at the start of a launch.
template <typename Layout>
__device__ __forceinline__ CtaState MakeCtaState(const CommonArgs& a, const Layout& layout,
                                                 uint8_t* shared) {
  return {a,
          reinterpret_cast<float*>(shared + layout.x),
          reinterpret_cast<const float*>(shared + layout.first),
          reinterpret_cast<const float*>(shared + layout.head),
          reinterpret_cast<const float*>(shared + layout.head_bias),
          reinterpret_cast<float2*>(shared + layout.moments),
          0,
          reinterpret_cast<int*>(shared + layout.timesteps),
          SpinWatchdog(a.timed_out)};
}

// What an MMA thread has of a GEMM tile: its warp's first out channel, of 16; its warpgroup's half
// of each k step; and in a CTA-local layer its warp's half of K.
__device__ __forceinline__ int FirstChannelOfWarp(int thread) { return thread >> 1 & 48; }
__device__ __forceinline__ int WarpgroupOf(int thread) { return thread >> 7; }
__device__ __forceinline__ int KHalfOf(int thread) { return thread >> 6 & 1; }

__device__ __forceinline__ float4 Load4(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
__device__ __forceinline__ void Add4(float4& to, const float4& v) {
  to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w;
}

// Four channels of a convolution of x with `taps` taps; weight (taps, in_c, channels).
__device__ __forceinline__ float4 ConvolveFirst(const CtaState& cta, const float* weight, int taps,
                                                int channels, int row, int position, int channel) {
  const FirstConvWeights& f = cta.a.first;
  const float* x = cta.X(row) + (position - taps / 2) * f.in_c;
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 2
  for (int i = 0; i < taps * f.in_c; ++i) {
    const float4 w = Load4(weight + i * channels + channel);
    sum.x += w.x * x[i], sum.y += w.y * x[i], sum.z += w.z * x[i], sum.w += w.w * x[i];
  }
  return sum;
}

// The epilogue's terms of four channels; loaded before the partial sums are polled, and not touched
// until those have arrived.
struct ChannelTerms {
  float4 bias, scale, shift;
  float4 film_scale[2], film_shift[2];  // of the timestep, of the conditioning
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_CTA_STATE_CUH_

#ifndef KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_HEAD_CUH_
#define KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_HEAD_CUH_

#include "kernels/cuda/megakernel/reader_epilogue/small_batch_input.cuh"

// The head of the reader-epilogue kernel.

namespace mjp::megakernel {

// Elements between the positions of the head's input.
__host__ __device__ inline int HeadPitch(const EpilogueSource& s) { return s.group_channels + 8; }

// The head: the epilogue of this CTA's output tiles of the final convolution, each multiplied with
// its channels of the 1x1 convolution to the actions. Eight lanes share an output. `s`: the final
// convolution's; `source`: this CTA's tile of it, where MI is 1.
template <typename T, int MI>
__device__ __forceinline__ void RunHead(CtaState& cta, const EpilogueSource& s,
                                        const SmallBatchSource* source, uint8_t* shared) {
  constexpr int kLanes = 8, kInFlight = kMmaThreads / kLanes;
  const int tiles = s.channels / s.group_channels, outputs = cta.a.length * cta.a.action_dim;
  const int pitch = HeadPitch(s);
  T* h = reinterpret_cast<T*>(shared);
  const ReductionGroup group =
      MakeReductionGroup(1, cta.a.length * s.group_channels / 4, cta.moments);
  for (int i = blockIdx.x; i < cta.a.rows * tiles; i += gridDim.x) {
    const int first = i % tiles * s.group_channels;
    if constexpr (MI == 1) {
      FillSmallBatchInput<T>(cta, *source, shared, [] {});
    } else if (group.index == 0) {
      NormalizeSource<T, kOwnerMaxVectors, true>(
          cta, s, i / tiles, i % tiles, cta.a.length, group, false,
          [&](int l, int channel, const Pack<T, 4>& pack) {
            *reinterpret_cast<Pack<T, 4>*>(h + l * pitch + channel - first) = pack;
          });
    }
    __syncthreads();
    for (int base = 0; base < outputs; base += kInFlight) {
      const int e = base + static_cast<int>(threadIdx.x) / kLanes, output = min(e, outputs - 1);
      const int l = output / cta.a.action_dim, action = output - l * cta.a.action_dim;
      const float* weight = cta.head + action * s.channels + first;
      float sum = 0.0f;
      for (int c = threadIdx.x % kLanes * 4; c < s.group_channels; c += kLanes * 4) {
        const Pack<T, 4>& x = *reinterpret_cast<const Pack<T, 4>*>(h + l * pitch + c);
        const float4 w = Load4(weight + c);
        sum += (ToFloat(x.v[0]) * w.x + ToFloat(x.v[1]) * w.y) +
               (ToFloat(x.v[2]) * w.z + ToFloat(x.v[3]) * w.w);
      }
#pragma unroll
      for (int mask = kLanes / 2; mask > 0; mask /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
      if (threadIdx.x % kLanes == 0 && e < outputs)
        StoreTagged(cta.a.head_partial_sums + static_cast<size_t>(i) * outputs + e, sum, cta.epoch);
    }
    __syncthreads();
  }
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_HEAD_CUH_

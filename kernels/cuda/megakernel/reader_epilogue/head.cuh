#ifndef KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_HEAD_CUH_
#define KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_HEAD_CUH_

#include "kernels/cuda/megakernel/reader_epilogue/small_batch_input.cuh"

// The last layer of the persistent chain.

namespace mjp {

// Elements between the positions of the head's input.
__host__ __device__ inline int HeadPitch(const ChainSource& s) { return s.item_channels + 8; }

// The last layer: this block's items of the final convolution's output, each multiplied with its
// share of the 1x1 convolution to the actions. Eight lanes share an output.
template <typename T, int MI>
__device__ __forceinline__ void RunHead(ChainBlock& b, const NarrowSource* narrow,
                                        uint8_t* shared) {
  constexpr int kLanes = 8, kAtOnce = kChainThreads / kLanes;
  const ChainSource& s = b.a.last;
  const int items = s.channels / s.item_channels, outputs = b.a.length * b.a.action_dim;
  const int pitch = HeadPitch(s);
  T* h = reinterpret_cast<T*>(shared);
  const ChainTeam team = MakeTeam(1, b.a.length * s.item_channels / 4, b.moments);
  for (int i = blockIdx.x; i < b.a.rows * items; i += gridDim.x) {
    const int first = i % items * s.item_channels;
    if constexpr (MI == 1) {
      CollectNarrow<T>(b, *narrow, shared, [] {});
    } else if (team.index == 0) {
      FinishItem<T, kChainOwnVectors, true>(
          b, s, i / items, i % items, b.a.length, team, false,
          [&](int l, int channel, const Pack<T, 4>& pack) {
            *reinterpret_cast<Pack<T, 4>*>(h + l * pitch + channel - first) = pack;
          });
    }
    __syncthreads();
    for (int base = 0; base < outputs; base += kAtOnce) {
      const int e = base + static_cast<int>(threadIdx.x) / kLanes, known = min(e, outputs - 1);
      const int l = known / b.a.action_dim, action = known - l * b.a.action_dim;
      const float* weight = b.head + action * s.channels + first;
      float sum = 0.0f;
      for (int c = threadIdx.x % kLanes * 4; c < s.item_channels; c += kLanes * 4) {
        const Pack<T, 4>& x = *reinterpret_cast<const Pack<T, 4>*>(h + l * pitch + c);
        const float4 w = Load4(weight + c);
        sum += (ToFloat(x.v[0]) * w.x + ToFloat(x.v[1]) * w.y) +
               (ToFloat(x.v[2]) * w.z + ToFloat(x.v[3]) * w.w);
      }
#pragma unroll
      for (int mask = kLanes / 2; mask > 0; mask /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
      if (threadIdx.x % kLanes == 0 && e < outputs)
        StoreWord(b.a.head_words + static_cast<size_t>(i) * outputs + e, sum, b.parity);
    }
    __syncthreads();
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_HEAD_CUH_

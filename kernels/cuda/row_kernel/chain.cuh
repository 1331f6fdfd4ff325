#ifndef KERNELS_CUDA_ROW_KERNEL_CHAIN_CUH_
#define KERNELS_CUDA_ROW_KERNEL_CHAIN_CUH_

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/cuda/row_kernel/cta.cuh"

// A CTA's set-up, x, and the sampler's step between passes.

namespace mjp::row_kernel {

// An element of x, and what the sampler's step needs of it. They are numbered action by action, so
// that the sums of a warp's elements are in different banks. A thread has the element of its own
// number in registers. Further ones, each kRoleThreads behind, are made for each pass; their x and
// noise stand in shared memory.
struct Element {
  int position, action;
  bool mine;
  float bias = 0;  // of the head
  float x = 0, noise = 0;
  const uint8_t* sums;    // of the head
  int parts, part_bytes;  // of them, and from each to the next
  DenoiseStep step;

  __device__ __forceinline__ explicit Element(const Cta& cta, int number = threadIdx.x)
      : position(number % cta.a.length),
        action(number / cta.a.length),
        mine(action < cta.a.action_dim) {
    const Layer& head = cta.LayerAt(cta.a.layer_count - 1);
    sums = cta.shared + cta.a.shared.head_sums + PlaceOfHead(cta, head);
    parts = 1 << head.parts_log2, part_bytes = head.part_bytes;
    if (mine) bias = LoadNow(cta.a.head_bias + action);
  }

  // Among the values of a row in memory.
  __device__ __forceinline__ int At(const Cta& cta) const {
    return position * cta.a.action_dim + action;
  }

  // The network's output.
  __device__ __forceinline__ float Output() const {
    float part[kWarps] = {};
#pragma unroll
    for (int k = 0; k < kWarps; ++k)
      if (k < parts) part[k] = *reinterpret_cast<const float*>(sums + k * part_bytes);
    float sum = part[0];
#pragma unroll
    for (int k = 1; k < kWarps; ++k)
      if (k < parts) sum += part[k];
    return sum + bias;
  }

 private:
  // Of this element among a part's sums, in bytes.
  __device__ __forceinline__ int PlaceOfHead(const Cta& cta, const Layer& head) const {
    if (cta.a.clusters > 1) return head.SumsAtOwner(action, position / 2) + position % 2 * 4;
    return (action * head.n_tiles * kPositionTile + position) * 4;
  }
};

// x and noise of a further element.
__device__ __forceinline__ float2& Further(const Cta& cta, int number) {
  return reinterpret_cast<float2*>(cta.shared + cta.a.shared.further)[number - kRoleThreads];
}

// Brings a CTA's tables into shared memory, and zeros into the activations: their halos stay so.
__device__ __forceinline__ void SetUp(const Cta& cta) {
  const Args& a = cta.a;
  const auto copy = [&](int to, const void* from, int words) {
    for (int i = threadIdx.x; i < words; i += kThreads)
      reinterpret_cast<uint32_t*>(cta.shared + to)[i] = static_cast<const uint32_t*>(from)[i];
  };
  copy(a.shared.layers, a.layers, a.layer_count * static_cast<int>(sizeof(Layer) / 4));
  copy(a.shared.steps, a.steps, a.step_count / 2);
  for (int at = a.shared.activations + threadIdx.x * 16; at < a.shared.sums; at += kThreads * 16)
    *reinterpret_cast<uint4*>(cta.shared + at) = make_uint4(0, 0, 0, 0);
}

// Puts an element's x into the input of the first layer.
template <typename T>
__device__ __forceinline__ void PutX(const Cta& cta, const Element& element) {
  *reinterpret_cast<T*>(cta.shared + cta.a.input + element.position * cta.a.input_pitch +
                        element.action * 2) = FromFloat<T>(element.x);
}

template <typename T>
__device__ __forceinline__ void LoadElement(const Cta& cta, Element& element) {
  const Args& a = cta.a;
  if (a.x_storage) {
    const size_t at =
        (static_cast<size_t>(cta.row) * a.length + element.position) * a.storage_pitch +
        element.action;
    element.x = ToFloat(static_cast<const T*>(a.x_storage)[at]);
  } else {
    element.x = a.x[static_cast<size_t>(cta.row) * cta.Elements() + element.At(cta)];
  }
  PutX<T>(cta, element);
}

// Loads the row's x at the start, and puts it into the input; `element` is the thread's first.
template <typename T>
__device__ __forceinline__ void LoadX(const Cta& cta, Element& element) {
  if (element.mine) LoadElement<T>(cta, element);
#pragma unroll 1
  for (int i = threadIdx.x + kRoleThreads; i < cta.Elements(); i += kRoleThreads) {
    Element further(cta, i);
    LoadElement<T>(cta, further);
    Further(cta, i) = make_float2(further.x, 0);
  }
}

// Loads what EndPass reads, before the pass.
__device__ __forceinline__ void LoadStep(const Cta& cta, int k, Element& element) {
  const Args& a = cta.a;
  if (a.x_storage) return;
  element.step = a.schedule[k];
  if (!a.noise) return;
  const float* noise = a.noise + (static_cast<size_t>(k) * a.rows + cta.row) * cta.Elements();
  if (element.mine) element.noise = LoadNow(noise + element.At(cta));
#pragma unroll 1
  for (int i = threadIdx.x + kRoleThreads; i < cta.Elements(); i += kRoleThreads)
    CopyAsync4(SharedAddress(&Further(cta, i).y), noise + Element(cta, i).At(cta), true);
  CommitCopies();
}

template <typename T>
__device__ __forceinline__ void EndElement(const Cta& cta, int k, const DenoiseStep& step,
                                           Element& element) {
  const Args& a = cta.a;
  const float output = element.Output();
  const size_t at = static_cast<size_t>(cta.row) * cta.Elements() + element.At(cta);
  const bool writes = cta.slice == 0 && k + 1 == a.end;
  if (writes) a.output[at] = output;
  if (a.x_storage) return;
  element.x = Denoise(step, element.x, output, element.noise);
  PutX<T>(cta, element);
  if (writes) a.x[at] = element.x;
}

// After a pass: the network's output, or the sampler's step `k`. `element` is the thread's first.
template <typename T>
__device__ __forceinline__ void EndPass(const Cta& cta, int k, Element& element) {
  const Args& a = cta.a;
  if (element.mine) EndElement<T>(cta, k, element.step, element);
  WaitCopies<0>();
#pragma unroll 1
  for (int i = threadIdx.x + kRoleThreads; i < cta.Elements(); i += kRoleThreads) {
    Element further(cta, i);
    further.x = Further(cta, i).x, further.noise = Further(cta, i).y;
    EndElement<T>(cta, k, element.step, further);
    Further(cta, i).x = further.x;
  }
  const bool takes_time = cta.row == 0 && cta.slice == 0 && threadIdx.x == 0;
  if (takes_time && k - a.begin < a.timestamps.capacity)
    a.timestamps.times[k - a.begin] = GlobalNanoseconds();
}

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_CHAIN_CUH_

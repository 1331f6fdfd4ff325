// x' = Denoise(x, output, noise) for the step that row_step names: a thread per four elements of
// a picture, the quad of one Philox counter. The last CTA to arrive increments the step.
// Bytes moved: x and output read, x and the network's input written, once; noise stays in
// registers.

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sampler/image_step.cuh"
#include "kernels/shared/philox.h"

namespace mjp {
namespace {

constexpr int kThreads = 128;

template <typename T>
__device__ __forceinline__ void StepQuad(const ImageStepArgs& a, int row, int quad) {
  const int k = a.row_step[row], elements = a.positions * a.channels;
  const DenoiseStep step = a.schedule[max(k, 0)];
  const NoiseAddress key = a.keys[row];
  float noise[4] = {};
  if (k < 0 || step.sigma > 0)
    NormalQuad(key.seed, key.decision, k < 0 ? kStartStep : static_cast<uint32_t>(step.timestep),
               static_cast<uint32_t>(quad), noise);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int e = quad * 4 + i;
    if (e >= elements) break;
    const size_t at = static_cast<size_t>(row) * elements + e;
    const float next = k < 0 ? noise[i] : Denoise(step, a.x[at], a.output[at], noise[i]);
    a.x[at] = next;
    const size_t position = static_cast<size_t>(row) * a.positions + e / a.channels;
    static_cast<T*>(a.input)[position * a.pitch + e % a.channels] = FromFloat<T>(next);
  }
}

// grid: quads of all rows
template <typename T>
__global__ void __launch_bounds__(kThreads)
    ImageStepKernel(const ImageStepArgs a, cudaGraphConditionalHandle loop, bool in_loop) {
  __shared__ bool last;
  WaitForPredecessor();
  ReleaseSuccessor();
  const int quads = (a.positions * a.channels + 3) / 4;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < a.rows * quads) StepQuad<T>(a, i / quads, i % quads);
  const int done = a.row_step[0] + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(a.arrivals, 1) == static_cast<int>(gridDim.x) - 1;
  }
  __syncthreads();
  if (!last) return;
  for (int row = threadIdx.x; row < a.rows; row += kThreads) a.row_step[row] = done;
  if (threadIdx.x != 0) return;
  *a.arrivals = 0;
  if (in_loop && done == a.steps) cudaGraphSetConditional(loop, 0);
}

}  // namespace

void LaunchImageStep(Format format, const ImageStepArgs& a, const cudaGraphConditionalHandle* loop,
                     cudaStream_t stream) {
  LaunchShape shape;
  const int quads = (a.positions * a.channels + 3) / 4;
  shape.grid = dim3((a.rows * quads + kThreads - 1) / kThreads);
  shape.block = dim3(kThreads);
  const auto kernel = format == Format::kFp16   ? ImageStepKernel<__half>
                      : format == Format::kBf16 ? ImageStepKernel<__nv_bfloat16>
                                                : ImageStepKernel<float>;
  Launch(kernel, shape, stream, "denoising step", a, loop ? *loop : cudaGraphConditionalHandle{},
         loop != nullptr);
}

}  // namespace mjp

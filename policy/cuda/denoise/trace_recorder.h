#ifndef POLICY_CUDA_DENOISE_TRACE_RECORDER_H_
#define POLICY_CUDA_DENOISE_TRACE_RECORDER_H_

#include <cuda_runtime_api.h>

#include <vector>

#include "policy/cuda/denoise/denoising_chain.h"

namespace mjp {

// Copies what a chain goes through to the host, waiting each time: the slow path of tests.
class TraceRecorder {
 public:
  // Fills eps_steps and x_steps of `trace` for the first `count` environments.
  TraceRecorder(PolicyTrace& trace, int count, cudaStream_t stream)
      : trace_(trace), count_(count), stream_(stream) {}

  // A step was taken: the network's output (environments, elements) and x, on the device.
  void AddStep(const DenoisingChain& chain, const float* output);
  // Of samplers with several passes in a step: one pass, or the step's x.
  void AddPass(const DenoisingChain& chain, const float* output);
  void AddX(const DenoisingChain& chain);
  // All steps were taken: outputs and x after each, (steps, environments, elements) on the device.
  void AddAllSteps(const DenoisingChain& chain, const float* outputs, const float* x);

 private:
  void Append(std::vector<float>& to, const float* device, size_t size);
  void AppendSteps(std::vector<float>& to, const DenoisingChain& chain, const float* device);

  PolicyTrace& trace_;
  int count_;
  cudaStream_t stream_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DENOISE_TRACE_RECORDER_H_

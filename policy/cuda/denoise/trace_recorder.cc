#include "policy/cuda/denoise/trace_recorder.h"

#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp {

void TraceRecorder::Append(std::vector<float>& to, const float* device, size_t size) {
  to.resize(to.size() + size);
  CheckCuda(cudaMemcpyAsync(to.data() + to.size() - size, device, size * sizeof(float),
                            cudaMemcpyDeviceToHost, stream_),
            "copy of the trace");
  CheckCuda(cudaStreamSynchronize(stream_), "a denoising step");
}

void TraceRecorder::AddStep(const DenoisingChain& chain, const float* output) {
  AddPass(chain, output);
  AddX(chain);
}

void TraceRecorder::AddPass(const DenoisingChain& chain, const float* output) {
  Append(trace_.eps_steps, output, size_t{1} * count_ * chain.Elements());
}

void TraceRecorder::AddX(const DenoisingChain& chain) {
  Append(trace_.x_steps, chain.x, size_t{1} * count_ * chain.Elements());
}

void TraceRecorder::AppendSteps(std::vector<float>& to, const DenoisingChain& chain,
                                const float* device) {
  const size_t row = size_t{1} * chain.environments * chain.Elements();
  std::vector<float> all;
  Append(all, device, chain.steps.size() * row);
  for (size_t k = 0; k < chain.steps.size(); ++k)
    to.insert(to.end(), all.begin() + k * row, all.begin() + k * row + count_ * chain.Elements());
}

void TraceRecorder::AddAllSteps(const DenoisingChain& chain, const float* outputs, const float* x) {
  AppendSteps(trace_.eps_steps, chain, outputs);
  AppendSteps(trace_.x_steps, chain, x);
}

}  // namespace mjp

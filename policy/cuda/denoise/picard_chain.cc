#include "policy/cuda/denoise/picard_chain.h"

#include <algorithm>
#include <string>

#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp {

PicardChain::PicardChain(const DenoisingChain& chain, DeviceArena& arena) : chain_(chain) {
  args_.environments = chain.environments;
  args_.window = chain.window;
  args_.steps = chain.Steps();
  args_.elements = chain.Elements();
  args_.action_dim = chain.action_dim;
  args_.tolerance = chain.tolerance;
  if (!PicardSupports(args_, GpuTraits::Current()))
    throw Unsupported("parallel window " + std::to_string(args_.window) + " of " +
                      std::to_string(args_.elements) +
                      " actions: the GPU takes windows up to 64 that fit its shared memory; use a "
                      "smaller window");
  args_.schedule = chain.schedule;
  args_.noise = chain.noise;
  args_.x = chain.x;
  args_.state = arena.Take<PicardState>(chain.environments);
  args_.remaining = arena.Take<int>(1);
  const size_t all = chain.steps.size() * chain.environments * chain.Elements();
  all_x_ = arena.Take<float>(all);
  all_output_ = arena.Take<float>(all);
  if (!arena.measuring()) host_states_ = PinnedArray<PicardState>(chain.environments);
}

PicardArgs PicardChain::Traced(const PicardArgs& args) const {
  PicardArgs traced = args;
  traced.all_x = all_x_, traced.all_output = all_output_;
  return traced;
}

void PicardChain::CopyTrace(TraceRecorder& trace) const {
  trace.AddAllSteps(chain_, all_output_, all_x_);
}

void PicardChain::FetchStates(cudaStream_t stream) const {
  CheckCuda(cudaMemcpyAsync(host_states_.data(), args_.state, host_states_.bytes(),
                            cudaMemcpyDeviceToHost, stream),
            "copy of the chains' states");
}

int PicardChain::Passes(int count) const {
  int most = 0;
  for (int n = 0; n < count; ++n) most = std::max(most, host_states_[n].passes);
  return most;
}

}  // namespace mjp

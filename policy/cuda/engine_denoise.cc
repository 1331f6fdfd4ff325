#include <string>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/graph_capture.h"
#include "policy/cuda/engine.h"

// The engine's denoising chain: step by step, or a window of steps at a time.

namespace mjp {

void CudaEngine::PlanPicard() {
  picard_ = {};
  picard_.environments = options_.batch;
  picard_.window = options_.sampler.parallel_window;
  picard_.steps = static_cast<int>(steps_.size());
  picard_.elements = Elements();
  picard_.action_dim = checkpoint_->config.action_dim;
  picard_.tolerance = options_.sampler.parallel_tolerance;
  if (!PicardSupports(picard_))
    throw Unsupported("parallel window " + std::to_string(picard_.window) + " of " +
                      std::to_string(picard_.elements) +
                      " actions: the GPU takes windows up to 64 that fit its shared memory; use a "
                      "smaller window");
  const size_t all = steps_.size() * options_.batch * picard_.elements;
  picard_.schedule = schedule_;
  picard_.noise = noise_;
  picard_.x = x_;
  picard_.state = arena_.Take<PicardState>(options_.batch);
  picard_.remaining = arena_.Take<int>(1);
  all_x_ = arena_.Take<float>(all);
  all_output_ = arena_.Take<float>(all);
  picard_rest_ = picard_;
  picard_rest_.window = 1;
  if (!unet_) return;
  const auto take_rows = [this](PicardArgs& picard, const UnetPass& unet) {
    const size_t rows = static_cast<size_t>(picard.environments) * picard.window;
    picard.pitch = unet.input_pitch();
    picard.output = unet.output();
    picard.input = unet.input();
    picard.evaluated = arena_.Take<float>(rows * picard.elements);
    picard.previous = arena_.Take<float>(2 * rows * picard.elements);
    picard.row_step = arena_.Take<int>(rows);
  };
  take_rows(picard_, *unet_);
  take_rows(picard_rest_, *unet_rest_);
}

void CudaEngine::EnqueueNoise() {
  NoiseArgs noise;
  noise.environments = options_.batch;
  noise.elements = Elements();
  noise.steps = static_cast<int>(steps_.size());
  noise.timesteps = timesteps_;
  noise.keys = input_.device().keys;
  noise.keep = input_.device().flags->keep;
  noise.start = x_;
  noise.noise = noise_;
  LaunchNoise(noise, stream_);
}

void CudaEngine::StampPass(bool restart, cudaStream_t stream) const {
  if (stamps_.capacity > 0) LaunchTimestamp(stamps_, restart, stream);
}

void CudaEngine::FetchStamps() {
  if (stamps_.capacity == 0) return;
  CheckCuda(cudaMemcpyAsync(host_stamps_, stamps_.times, sizeof(uint64_t) * stamps_.capacity,
                            cudaMemcpyDeviceToHost, stream_),
            "copy of the stamps");
}

// Puts the stamps on the host's clock: the first one is the beginning of the denoising.
void CudaEngine::ReadSteps(StageTimes& times) const {
  if (stamps_.capacity == 0) return;
  const auto at = [&](int stamp) {
    return times[Stage::kDenoise].begin +
           1e-9 * static_cast<double>(host_stamps_[stamp] - host_stamps_[0]);
  };
  for (int pass = 0; pass < times.passes; ++pass) times.steps.push_back({at(pass), at(pass + 1)});
}

void CudaEngine::EnqueueChain(PolicyTrace* trace, int count) {
  StampPass(true, stream_);
  EnqueueNoise();
  if (chain_) {
    EnqueueWholeChain(trace, count);
  } else if (options_.sampler.parallel_window > 0) {
    EnqueuePicard(trace, count);
  } else {
    EnqueueSequential(trace, count);
  }
}

// The chain in one launch, or step by step in one for each of several parts of its rows; with a
// trace step by step a launch takes one step.
void CudaEngine::EnqueueWholeChain(PolicyTrace* trace, int count) {
  CheckCuda(cudaMemsetAsync(chain_->timed_out(), 0, sizeof(int), stream_), "denoising chain");
  if (options_.sampler.parallel_window > 0) {
    PicardArgs picard = picard_;
    if (trace) picard.all_x = all_x_, picard.all_output = all_output_;
    chain_->RunWindows(picard, stamps_, stream_);
    chain_rest_->RunFallback(picard, stamps_, stream_);
    if (trace) CollectSteps(*trace, count);
    FetchStates();
  } else {
    const int steps = static_cast<int>(steps_.size()), launches = trace ? steps : 1;
    for (int k = 0; k < launches; ++k) {
      chain_->RunSteps(schedule_, noise_, x_, k, trace ? k + 1 : steps, stamps_, stream_);
      if (trace) CollectTrace(*trace, count, chain_->output());
    }
  }
  CheckCuda(cudaMemcpyAsync(host_stuck_, chain_->timed_out(), sizeof(int), cudaMemcpyDeviceToHost,
                            stream_),
            "denoising chain");
}

void CudaEngine::FetchStates() {
  CheckCuda(cudaMemcpyAsync(host_states_, picard_.state, sizeof(PicardState) * options_.batch,
                            cudaMemcpyDeviceToHost, stream_),
            "copy of the chains' states");
}

void CudaEngine::EnqueueSequential(PolicyTrace* trace, int count) {
  const PolicyConfig& config = checkpoint_->config;
  DenoiseArgs a;
  a.positions = options_.batch * config.horizon;
  a.action_dim = config.action_dim;
  a.pitch = unet_->input_pitch();
  a.x = a.next = x_;
  a.input = unet_->input();
  LaunchDenoise(format_, a, stream_);
  a.output = unet_->output();
  for (size_t k = 0; k < steps_.size(); ++k) {
    unet_->RunPass(row_step_ + k * options_.batch, stream_);
    a.step = steps_[k];
    if (noise_ != nullptr) a.noise = noise_ + k * options_.batch * Elements();
    LaunchDenoise(format_, a, stream_);
    StampPass(false, stream_);
    if (trace != nullptr) CollectTrace(*trace, count, unet_->output());
  }
}

void CudaEngine::EnqueuePicard(PolicyTrace* trace, int count) {
  LaunchPicardStart(format_, picard_, stream_);
  if (capturing_) {
    const auto passes = [&](const UnetPass& unet, const PicardArgs& picard) {
      return [this, &unet, &picard](const cudaGraphConditionalHandle& loop) {
        unet.RunPass(picard.row_step, loop_stream_);
        LaunchPicardSweep(format_, picard, &loop, loop_stream_);
        StampPass(false, loop_stream_);
      };
    };
    CaptureLoop(stream_, loop_stream_, passes(*unet_, picard_));
    CaptureLoop(stream_, loop_stream_, passes(*unet_rest_, picard_rest_),
                [&](const cudaGraphConditionalHandle& loop) {
                  LaunchPicardFallback(format_, picard_rest_, &loop, stream_);
                });
  } else {
    RunPicardOnHost(*unet_, picard_);
    LaunchPicardFallback(format_, picard_rest_, nullptr, stream_);
    RunPicardOnHost(*unet_rest_, picard_rest_);
    CollectSteps(*trace, count);
  }
  FetchStates();
}

// The loop of a traced chain; the slow path of tests.
void CudaEngine::RunPicardOnHost(const UnetPass& unet, const PicardArgs& picard) {
  PicardArgs traced = picard;
  traced.all_x = all_x_, traced.all_output = all_output_;
  for (;;) {
    int remaining = 0;
    CheckCuda(
        cudaMemcpyAsync(&remaining, picard.remaining, sizeof(int), cudaMemcpyDeviceToHost, stream_),
        "copy of the trace");
    CheckCuda(cudaStreamSynchronize(stream_), "a denoising pass");
    if (remaining == 0) return;
    unet.RunPass(picard.row_step, stream_);
    LaunchPicardSweep(format_, traced, nullptr, stream_);
    StampPass(false, stream_);
  }
}

// Copies the time-parallel chain's steps; the slow path of tests.
void CudaEngine::CollectSteps(PolicyTrace& trace, int count) {
  const size_t row = static_cast<size_t>(options_.batch) * Elements();
  std::vector<float> all(steps_.size() * row);
  const auto append = [&](std::vector<float>& to, const float* device) {
    CheckCuda(cudaMemcpyAsync(all.data(), device, all.size() * sizeof(float),
                              cudaMemcpyDeviceToHost, stream_),
              "copy of the trace");
    CheckCuda(cudaStreamSynchronize(stream_), "copy of the trace");
    for (size_t k = 0; k < steps_.size(); ++k)
      to.insert(to.end(), all.begin() + k * row, all.begin() + k * row + count * Elements());
  };
  append(trace.eps_steps, all_output_);
  append(trace.x_steps, all_x_);
}

// Copies the step's prediction and x; the slow path of tests.
void CudaEngine::CollectTrace(PolicyTrace& trace, int count, const float* output) {
  const PolicyConfig& config = checkpoint_->config;
  const size_t n = static_cast<size_t>(count) * config.horizon * config.action_dim;
  const auto append = [&](std::vector<float>& to, const float* device) {
    to.resize(to.size() + n);
    CheckCuda(cudaMemcpyAsync(to.data() + to.size() - n, device, n * sizeof(float),
                              cudaMemcpyDeviceToHost, stream_),
              "copy of the trace");
    CheckCuda(cudaStreamSynchronize(stream_), "a denoising step");
  };
  append(trace.eps_steps, output);
  append(trace.x_steps, x_);
}

}  // namespace mjp

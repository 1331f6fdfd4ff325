#include <utility>

#include "policy/cuda/denoise/denoiser.h"
#include "policy/cuda/denoise/standstill.h"

namespace mjp {
namespace {

constexpr int kPasses = 4;  // of a step

// x + scale output, as a step of the reverse process.
DenoiseStep Moved(float scale) {
  DenoiseStep step;
  step.prediction = Prediction::kSample;
  step.x0_scale = scale;
  step.x_scale = 1;
  return step;
}

// The classical method of order 4, unrolled in the graph: the chain's steps are its passes, four of
// which make a step of the time x0_scale.
class RungeKuttaDenoiser final : public Denoiser {
 public:
  RungeKuttaDenoiser(const DenoisingChain& chain, std::unique_ptr<NetworkPass> pass,
                     DeviceArena& arena)
      : chain_(chain), pass_(std::move(pass)), standstill_(pass_->timed_out()) {
    const size_t size = size_t{1} * chain.environments * chain.Elements();
    sum_ = arena.Take<float>(size);
    moved_ = arena.Take<float>(size);
  }

  void Enqueue(const DenoiseContext& context) override {
    Move({}, chain_.x, chain_.x, false, context);
    for (int k = 0; k < chain_.Steps(); ++k) {
      const float dt = chain_.steps[k].x0_scale;
      const float weights[kPasses] = {dt / 6, dt / 3, dt / 3, dt / 6};
      const float ahead[kPasses - 1] = {dt / 2, dt / 2, dt};
      const int i = k % kPasses;
      pass_->RunPass(chain_.row_step + size_t{1} * k * chain_.environments, context.stream);
      if (context.trace != nullptr) context.trace->AddPass(chain_, pass_->output());
      const bool last = i == kPasses - 1;
      Move(Moved(weights[i]), i == 0 ? chain_.x : sum_, last ? chain_.x : sum_, true, context);
      if (!last) Move(Moved(ahead[i]), chain_.x, moved_, true, context);
      context.timing.RecordPass(false, context.stream);
      if (last && context.trace != nullptr) context.trace->AddX(chain_);
    }
  }

  void EnqueueEachPass(cudaStream_t stream) const override {
    pass_->RunPass(chain_.row_step, stream);
  }
  int MostPasses() const override { return chain_.Steps(); }
  void CheckFinished() override { standstill_.Check(); }

 private:
  // next = `step` of x, which becomes the network's input too.
  void Move(const DenoiseStep& step, const float* x, float* next, bool by_output,
            const DenoiseContext& context) const {
    DenoiseArgs a;
    a.step = step;
    a.positions = chain_.environments * chain_.horizon;
    a.action_dim = chain_.action_dim;
    a.pitch = pass_->input_pitch();
    a.output = by_output ? pass_->output() : nullptr;
    a.x = x;
    a.next = next;
    a.input = pass_->input();
    LaunchDenoise(chain_.format, a, context.stream);
  }

  const DenoisingChain& chain_;
  std::unique_ptr<NetworkPass> pass_;
  Standstill standstill_;
  float *sum_, *moved_;
};

}  // namespace

std::unique_ptr<Denoiser> MakeRungeKuttaDenoiser(const DenoisingChain& chain,
                                                 std::unique_ptr<NetworkPass> pass,
                                                 DeviceArena& arena) {
  return std::make_unique<RungeKuttaDenoiser>(chain, std::move(pass), arena);
}

}  // namespace mjp

#include <optional>
#include <utility>

#include "policy/cuda/denoise/denoiser.h"
#include "policy/cuda/denoise/picard_chain.h"
#include "policy/cuda/denoise/standstill.h"

namespace mjp {
namespace {

// Whole chains in the megakernel: windows of steps in one launch and their fallback in another, or
// step by step in one for each of several parts of the rows.
class MegakernelDenoiser final : public Denoiser {
 public:
  MegakernelDenoiser(const DenoisingChain& chain, PassLaunches unet, DeviceArena& arena)
      : chain_(chain),
        megakernel_(std::move(unet.megakernel)),
        fallback_(std::move(unet.megakernel_fallback)) {
    if (chain.window > 1) picard_.emplace(chain, arena);
    standstill_ = Standstill(megakernel_->timed_out());
  }

  void Enqueue(const DenoiseContext& context) override {
    picard_ ? EnqueueWindows(context) : EnqueueSteps(context);
  }

  int MostPasses() const override { return chain_.Steps() * megakernel_->launches(); }
  int Passes(int count) const override { return picard_ ? picard_->Passes(count) : MostPasses(); }

  void CheckFinished() override { standstill_.Check(); }

 private:
  void EnqueueWindows(const DenoiseContext& context) const {
    const PicardArgs args = context.trace ? picard_->Traced(picard_->args()) : picard_->args();
    megakernel_->RunWindows(args, context.timing.timestamps(), context.stream);
    fallback_->RunFallback(args, context.timing.timestamps(), context.stream);
    if (context.trace) picard_->CopyTrace(*context.trace);
    picard_->FetchStates(context.stream);
  }

  // A launch takes one step where something is to be done between them.
  void EnqueueSteps(const DenoiseContext& context) const {
    const int steps = chain_.Steps();
    const int at_once = context.trace || chain_.holds() ? 1 : steps;
    for (int k = 0; k < steps; k += at_once) {
      chain_.EnqueueHeld(k, context.stream);
      megakernel_->RunSteps(chain_.schedule, chain_.noise, chain_.x, k, k + at_once,
                            context.timing.timestamps(), context.stream);
      if (context.trace) context.trace->AddStep(chain_, megakernel_->output());
    }
    chain_.EnqueueHeld(steps, context.stream);
  }

  const DenoisingChain& chain_;
  std::unique_ptr<MegakernelLaunch> megakernel_, fallback_;
  std::optional<PicardChain> picard_;
  Standstill standstill_;
};

}  // namespace

std::unique_ptr<Denoiser> MakeMegakernelDenoiser(const DenoisingChain& chain, PassLaunches unet,
                                                 DeviceArena& arena) {
  return std::make_unique<MegakernelDenoiser>(chain, std::move(unet), arena);
}

}  // namespace mjp

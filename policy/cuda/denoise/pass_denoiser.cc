#include <utility>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/graph_capture.h"
#include "policy/cuda/denoise/denoiser.h"
#include "policy/cuda/denoise/picard_chain.h"
#include "policy/cuda/denoise/standstill.h"

namespace mjp {
namespace {

// One pass per step, unrolled in the graph.
class SequentialDenoiser final : public Denoiser {
 public:
  SequentialDenoiser(const DenoisingChain& chain, PassLaunches unet)
      : chain_(chain), unet_(std::move(unet.pass)), standstill_(unet_->timed_out()) {}

  void Enqueue(const DenoiseContext& context) override {
    if (EnqueueChain(context)) return;
    DenoiseArgs a;
    a.positions = chain_.environments * chain_.horizon;
    a.action_dim = chain_.action_dim;
    a.pitch = unet_->input_pitch();
    a.x = a.next = chain_.x;
    a.input = unet_->input();
    if (!chain_.holds()) LaunchDenoise(chain_.format, a, context.stream);
    for (int k = 0; k < chain_.Steps(); ++k) {
      EnqueueHeld(k, a, context.stream);
      a.output = unet_->output();
      unet_->RunPass(chain_.row_step + size_t{1} * k * chain_.environments, context.stream);
      a.step = chain_.steps[k];
      if (chain_.noise != nullptr)
        a.noise = chain_.noise + size_t{1} * k * chain_.environments * chain_.Elements();
      LaunchDenoise(chain_.format, a, context.stream);
      context.timing.RecordPass(false, context.stream);
      if (context.trace != nullptr) context.trace->AddStep(chain_, unet_->output());
    }
    chain_.EnqueueHeld(chain_.Steps(), context.stream);
  }

  void EnqueueEachPass(cudaStream_t stream) const override {
    unet_->RunPass(chain_.row_step, stream);
  }
  int MostPasses() const override { return chain_.Steps(); }
  void CheckFinished() override { standstill_.Check(); }

 private:
  // Puts what is held in its place in x and in the network's input.
  void EnqueueHeld(int step, DenoiseArgs a, cudaStream_t stream) const {
    if (!chain_.holds()) return;
    chain_.EnqueueHeld(step, stream);
    a.output = a.noise = nullptr;
    LaunchDenoise(chain_.format, a, stream);
  }

  // All steps in one launch, or each of them where something is to be done between them. False: no
  // such launch.
  bool EnqueueChain(const DenoiseContext& context) const {
    const int steps = chain_.Steps();
    const int at_once = context.trace || chain_.holds() ? 1 : steps;
    for (int k = 0; k < steps; k += at_once) {
      chain_.EnqueueHeld(k, context.stream);
      if (!unet_->RunSteps(chain_.schedule, chain_.noise, chain_.x, k, k + at_once,
                           context.timing.timestamps(), context.stream))
        return false;
      if (context.trace) context.trace->AddStep(chain_, unet_->output());
    }
    chain_.EnqueueHeld(steps, context.stream);
    return true;
  }

  const DenoisingChain& chain_;
  std::unique_ptr<NetworkPass> unet_;
  Standstill standstill_;
};

// Windows of steps in a loop of the graph, and another loop for the chains whose windows were
// abandoned.
class WindowDenoiser final : public Denoiser {
 public:
  WindowDenoiser(const DenoisingChain& chain, PassLaunches unet, DeviceArena& arena)
      : chain_(chain),
        unet_(std::move(unet.pass)),
        fallback_(std::move(unet.pass_fallback)),
        picard_(chain, arena),
        args_(picard_.args()),
        fallback_args_(picard_.args()) {
    fallback_args_.window = 1;
    TakeRows(*unet_, args_, arena);
    TakeRows(*fallback_, fallback_args_, arena);
  }

  void Enqueue(const DenoiseContext& context) override {
    LaunchPicardStart(chain_.format, args_, context.stream);
    if (context.trace == nullptr) {
      CaptureLoops(context);
    } else {
      RunOnHost(*unet_, args_, context);
      LaunchPicardFallback(chain_.format, fallback_args_, nullptr, context.stream);
      RunOnHost(*fallback_, fallback_args_, context);
      picard_.CopyTrace(*context.trace);
    }
    picard_.FetchStates(context.stream);
  }

  void EnqueueEachPass(cudaStream_t stream) const override {
    unet_->RunPass(chain_.row_step, stream);
    fallback_->RunPass(chain_.row_step, stream);
  }
  int MostPasses() const override { return chain_.Steps(); }  // each finishes one or more
  int Passes(int count) const override { return picard_.Passes(count); }

 private:
  static void TakeRows(const NetworkPass& unet, PicardArgs& args, DeviceArena& arena) {
    const size_t rows = size_t{1} * args.environments * args.window;
    args.pitch = unet.input_pitch();
    args.output = unet.output();
    args.input = unet.input();
    args.evaluated = arena.Take<float>(rows * args.elements);
    args.previous = arena.Take<float>(2 * rows * args.elements);
    args.row_step = arena.Take<int>(rows);
  }

  void CaptureLoops(const DenoiseContext& context) const {
    const auto passes = [&](const NetworkPass& unet, const PicardArgs& args) {
      return [&](const cudaGraphConditionalHandle& loop) {
        unet.RunPass(args.row_step, context.loop_stream);
        LaunchPicardSweep(chain_.format, args, &loop, context.loop_stream);
        context.timing.RecordPass(false, context.loop_stream);
      };
    };
    CaptureLoop(context.stream, context.loop_stream, passes(*unet_, args_));
    CaptureLoop(context.stream, context.loop_stream, passes(*fallback_, fallback_args_),
                [&](const cudaGraphConditionalHandle& loop) {
                  LaunchPicardFallback(chain_.format, fallback_args_, &loop, context.stream);
                });
  }

  // The loop of a traced chain.
  void RunOnHost(const NetworkPass& unet, const PicardArgs& args,
                 const DenoiseContext& context) const {
    const PicardArgs traced = picard_.Traced(args);
    for (;;) {
      int remaining = 0;
      CheckCuda(cudaMemcpyAsync(&remaining, args.remaining, sizeof(int), cudaMemcpyDeviceToHost,
                                context.stream),
                "copy of the trace");
      CheckCuda(cudaStreamSynchronize(context.stream), "a denoising pass");
      if (remaining == 0) return;
      unet.RunPass(args.row_step, context.stream);
      LaunchPicardSweep(chain_.format, traced, nullptr, context.stream);
      context.timing.RecordPass(false, context.stream);
    }
  }

  const DenoisingChain& chain_;
  std::unique_ptr<NetworkPass> unet_, fallback_;
  PicardChain picard_;
  PicardArgs args_, fallback_args_;
};

}  // namespace

std::unique_ptr<Denoiser> MakePassDenoiser(const DenoisingChain& chain, PassLaunches unet,
                                           DeviceArena& arena) {
  if (chain.window > 1) return std::make_unique<WindowDenoiser>(chain, std::move(unet), arena);
  return std::make_unique<SequentialDenoiser>(chain, std::move(unet));
}

}  // namespace mjp

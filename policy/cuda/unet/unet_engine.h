#ifndef POLICY_CUDA_UNET_UNET_ENGINE_H_
#define POLICY_CUDA_UNET_UNET_ENGINE_H_

#include <memory>
#include <string>

#include "base/json_forward.h"
#include "kernels/cuda/primitives/cuda_raii.h"
#include "policy/cuda/decision/conditioning.h"
#include "policy/cuda/decision/decision_graph.h"
#include "policy/cuda/decision/decision_timing.h"
#include "policy/cuda/decision/input_block.h"
#include "policy/cuda/decision/picture_encoders.h"
#include "policy/cuda/denoise/denoiser.h"
#include "policy/cuda/device_weights.h"
#include "policy/cuda/engine.h"
#include "policy/cuda/execution_plan.h"

namespace mjp {

// The U-Net's engine.
class UnetEngine final : public CudaEngine {
 public:
  // `options` as resolved. Throws Error for a shape no kernel supports, or if memory is short.
  UnetEngine(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);
  ~UnetEngine() override;

  void Launch(const PolicyInput& input, PolicyTrace* trace) override;
  void Wait(PolicyOutput& output) override;
  std::string PlanText() const override { return plan_.Text() + ", since " + plan_.why; }
  bool WeightsIntact() const override { return weights_->Intact(); }

 private:
  void Plan();
  void CheckShapes();
  void Enqueue(PictureSource source, TraceRecorder* trace);
  void EnqueueTraced(PictureSource source, PolicyTrace& trace);

  DenoisingChain chain_;
  ExecutionPlan plan_;
  std::shared_ptr<const DeviceWeights> weights_;
  DeviceArena arena_;  // of all that follows
  InputBlock input_;
  PictureEncoders pictures_;
  Conditioning conditioning_;
  const FilmConditioning* film_ = nullptr;  // the denoiser's
  std::unique_ptr<Denoiser> denoiser_;
  DecisionTiming timing_;
  PinnedArray<float> host_x_;  // what a decision fetches
  CudaStream stream_ = MakeCudaStream(), loop_stream_ = MakeCudaStream();
  DecisionGraphs graphs_;
  int count_ = 0;  // environments of the decision under way
};

// What the table of networks has of the U-Net.
extern const CudaNetwork kUnetOnCuda;

// The execution plans of a U-Net's policy with its own sampler on the GPU called `gpu`, one for
// each of some numbers of environments. Throws Error for an unknown GPU.
Json UnetPlans(const Checkpoint& checkpoint, const std::string& gpu);

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_UNET_ENGINE_H_

#ifndef POLICY_CUDA_ENGINE_H_
#define POLICY_CUDA_ENGINE_H_

#include <memory>

#include "kernels/cuda/primitives/cuda_raii.h"
#include "policy/cuda/decision/conditioning.h"
#include "policy/cuda/decision/decision_graph.h"
#include "policy/cuda/decision/decision_timing.h"
#include "policy/cuda/decision/picture_encoders.h"
#include "policy/cuda/denoise/denoiser.h"
#include "policy/cuda/device_weights.h"
#include "policy/cuda/execution_plan.h"
#include "policy/cuda/input_block.h"
#include "policy/policy.h"

namespace mjp {

// One checkpoint, ready to run on the GPU with one set of options: memory, launches and the CUDA
// graphs made of them. A decision is one graph launch and one synchronisation.
class CudaEngine {
 public:
  // `options` as resolved. Throws Error for a shape no kernel supports, or if memory is short.
  CudaEngine(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);
  ~CudaEngine();
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  // Starts a decision on a valid `input`, which is not read after the call. With a trace the
  // decision is computed step by step. Throws Error after a fault of the GPU.
  void Launch(const PolicyInput& input, PolicyTrace* trace);
  // Waits for the decision and reads its actions and times.
  void Wait(PolicyOutput& output);

  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const PolicyOptions& options() const { return options_; }
  const ExecutionPlan& plan() const { return plan_; }

 private:
  void Plan();
  void CheckShapes();
  void Enqueue(PictureSource source, TraceRecorder* trace);
  void EnqueueTraced(PictureSource source, PolicyTrace& trace);

  std::shared_ptr<const Checkpoint> checkpoint_;
  PolicyOptions options_;
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

}  // namespace mjp

#endif  // POLICY_CUDA_ENGINE_H_

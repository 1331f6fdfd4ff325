#ifndef POLICY_CUDA_ENGINE_H_
#define POLICY_CUDA_ENGINE_H_

#include <cuda_runtime_api.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda/sampler/conditioning.cuh"
#include "kernels/cuda/sampler/denoise.cuh"
#include "kernels/cuda/sampler/picard.cuh"
#include "kernels/cuda/sampler/timestamp.cuh"
#include "policy/cuda/device_weights.h"
#include "policy/cuda/encoder_layers.h"
#include "policy/cuda/execution_plan.h"
#include "policy/cuda/input_block.h"
#include "policy/cuda/unet/megakernel_denoiser.h"
#include "policy/cuda/unet/unet_pass.h"
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
  // decision is computed step by step. Throws Error(kRetryable) after a fault of the GPU.
  void Launch(const PolicyInput& input, PolicyTrace* trace);
  // Waits for the decision and reads its actions and times.
  void Wait(PolicyOutput& output);

  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const PolicyOptions& options() const { return options_; }
  const ExecutionPlan& plan() const { return plan_; }

 private:
  // Borders of the stages within the graph; border i ends kBorderStages[i - 1].
  static constexpr std::array<Stage, 7> kBorderStages = {
      Stage::kHandOver, Stage::kRender,  Stage::kPrepare, Stage::kEncode,
      Stage::kFilm,     Stage::kDenoise, Stage::kFetch};
  enum Pictures { kNoPictures, kFrames, kScenes, kPictureSources };

  CudaEngine(const PolicyOptions& options, std::shared_ptr<const Checkpoint> checkpoint);
  void Plan();
  void UploadTables();
  Pictures Source(const PolicyInput& input) const;
  void Enqueue(Pictures pictures, PolicyTrace* trace, int count);
  void EnqueueEncoder(Pictures pictures);
  void EnqueueCondition();
  void EnqueueNoise();
  void EnqueueChain(PolicyTrace* trace, int count);
  void EnqueueSequential(PolicyTrace* trace, int count);
  void EnqueueWholeChain(PolicyTrace* trace, int count);
  void FetchStates();
  void EnqueuePicard(PolicyTrace* trace, int count);
  void PlanPicard();
  std::unique_ptr<UnetPass> MakePass(int rows, int rows_per_env, const FilmCondition* condition);
  void RunPicardOnHost(const UnetPass& unet, const PicardArgs& picard);
  void CollectSteps(PolicyTrace& trace, int count);
  int Passes() const;
  int Elements() const;
  void RecordBorder(size_t border);
  cudaGraph_t Capture(const std::function<void()>& enqueue);
  cudaGraphExec_t Captured(Pictures pictures);
  void CheckShapes();
  void CheckNotStuck() const;
  void CollectTrace(PolicyTrace& trace, int count, const float* output);
  void FillInputs(const PolicyInput& input, Pictures pictures);
  void UploadTapes(const PolicyInput& input);
  // Stamps the end of a pass, or with `restart` the beginning of the first one.
  void StampPass(bool restart, cudaStream_t stream) const;
  void FetchStamps();
  void ReadTimes(StageTimes& times, double end) const;
  void ReadSteps(StageTimes& times) const;

  std::shared_ptr<const Checkpoint> checkpoint_;
  PolicyOptions options_;
  Format format_;
  std::vector<DenoiseStep> steps_;
  ExecutionPlan plan_;
  std::shared_ptr<const DeviceWeights> weights_;
  DeviceArena arena_;
  InputBlock input_;
  std::unique_ptr<const GpuSceneDrawer> drawer_;  // null: no scenes
  std::unique_ptr<UnetPass> unet_;                // or
  std::unique_ptr<MegakernelDenoiser> chain_;     // where whole chains run in persistent launches
  // for what windows give up: the same of one row per environment
  std::unique_ptr<UnetPass> unet_rest_;
  std::unique_ptr<MegakernelDenoiser> chain_rest_;
  std::vector<std::unique_ptr<EncoderPlan>> encoders_;
  float *cond_ = nullptr, *x_ = nullptr, *noise_ = nullptr, *given_cond_ = nullptr;
  int *row_step_ = nullptr, *timesteps_ = nullptr;
  DenoiseStep* schedule_ = nullptr;
  PicardArgs picard_, picard_rest_;  // where the sampler is time-parallel
  float *all_x_ = nullptr, *all_output_ = nullptr;
  TimestampList stamps_;                // of the passes, where they are timed
  uint64_t* host_stamps_ = nullptr;     // pinned
  PicardState* host_states_ = nullptr;  // pinned
  float* host_x_ = nullptr;             // pinned: what the graph fetches
  int* host_stuck_ = nullptr;           // pinned: whether a wait within the chain was given up
  bool stuck_ = false;                  // whether one ever was
  cudaStream_t stream_ = nullptr, loop_stream_ = nullptr;
  std::array<cudaEvent_t, kBorderStages.size() + 1> borders_ = {};
  std::array<cudaGraphExec_t, kPictureSources> graphs_ = {};
  bool capturing_ = false;
  int count_ = 0;     // environments of the decision under way
  double begin_ = 0;  // when its inputs came
};

}  // namespace mjp

#endif  // POLICY_CUDA_ENGINE_H_

#ifndef POLICY_CUDA_DIT_DIT_ENGINE_H_
#define POLICY_CUDA_DIT_DIT_ENGINE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_forward.h"
#include "kernels/cpu/thread_pool.h"
#include "policy/cuda/decision/decision_graph.h"
#include "policy/cuda/decision/input_block.h"
#include "policy/cuda/decision/picture_encoders.h"
#include "policy/cuda/denoise/denoiser.h"
#include "policy/cuda/dit/clip_launches.h"
#include "policy/cuda/dit/dit_pass.h"
#include "policy/cuda/dit/text_terms.h"
#include "policy/cuda/engine.h"
#include "policy/cuda/execution_plan.h"
#include "policy/dit/packed_dit.h"
#include "policy/dit/text_features.h"
#include "policy/scene_drawer.h"

namespace mjp {

// multi_task_dit's engine, and dit_compact's: pictures, CLIP's vision tower or this project's
// encoder, condition, all steps, one graph. The
// steps run in the sequence kernel, or by a launch for each layer. An instruction's feature is made
// on the CPU when it is first given.
class DitEngine final : public CudaEngine {
 public:
  // `options` as resolved. Throws Error for a shape no kernel supports, or if memory is short.
  DitEngine(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);
  ~DitEngine() override;

  void Launch(const PolicyInput& input, PolicyTrace* trace) override;
  void Wait(PolicyOutput& output) override;
  std::string PlanText() const override { return plan_.Text() + ", since " + plan_.why; }
  bool WeightsIntact() const override { return weights_->Intact() && table_arena_.HoldsUploads(); }

 private:
  void PlanTable(const std::vector<float>& terms);
  void Plan();
  void PlanTowers();
  void PrepareTowers();
  void PlanDenoiser();
  void WriteText(const PolicyInput& input);
  // Enqueue one stage each.
  void Prepare(PictureSource source);
  void Encode(PictureSource source);
  void Condition();
  void Enqueue(PictureSource source, TraceRecorder* trace);
  int Frames() const { return options_.batch * config_.n_obs_steps; }  // of each camera
  size_t FeatureSize() const { return size_t{1} * Frames() * config_.FeatureDim(); }

  const DitModel& model_;
  const DitConfig& config_;
  DenoisingChain chain_;
  DitExecutionPlan plan_;
  std::shared_ptr<const DeviceDit> weights_;
  std::shared_ptr<const cpu::PackedDit> packed_;
  cpu::ThreadPool pool_;
  std::optional<cpu::TextFeatures> texts_;  // none without text
  std::unique_ptr<const GpuSceneDrawer> drawer_;
  DeviceArena table_arena_;
  DeviceFilm film_;    // AdaLN's terms of all blocks
  DeviceArena arena_;  // of all that follows
  InputBlock input_;
  std::optional<PictureEncoders> encoders_;            // of dit_compact
  std::vector<std::unique_ptr<ClipLaunches>> towers_;  // none without cameras, nor with encoders
  float* features_ = nullptr;                          // (cameras, frames, width)
  float *cond_ = nullptr, *given_ = nullptr;           // (environments, CondDim())
  std::optional<TextTerms> text_terms_;                // none without text
  std::optional<FilmConditioning> conditioning_;
  std::unique_ptr<Denoiser> denoiser_;
  DecisionTiming timing_;
  PinnedArray<float> host_x_;
  CudaStream stream_ = MakeCudaStream(), loop_stream_ = MakeCudaStream();
  DecisionGraphs graphs_;
  int count_ = 0;                 // environments of the decision under way
  PolicyTrace* trace_ = nullptr;  // of the decision under way
};

// What the table of networks has of multi_task_dit.
extern const CudaNetwork kDitOnCuda;

// How such a policy would run on the GPU called `gpu`, for some numbers of environments. Throws
// Error for an unknown GPU.
Json DitPlans(const Checkpoint& checkpoint, const std::string& gpu);

}  // namespace mjp

#endif  // POLICY_CUDA_DIT_DIT_ENGINE_H_

#ifndef POLICY_CUDA_ACT_ACT_ENGINE_H_
#define POLICY_CUDA_ACT_ACT_ENGINE_H_

#include <memory>
#include <string>

#include "base/json_forward.h"
#include "kernels/cuda/primitives/cuda_raii.h"
#include "policy/cuda/act/act_launches.h"
#include "policy/cuda/decision/decision_graph.h"
#include "policy/cuda/decision/decision_timing.h"
#include "policy/cuda/decision/input_block.h"
#include "policy/cuda/engine.h"
#include "policy/scene_drawer.h"

namespace mjp {

// ACT's engine: pictures, backbone and transformer, a launch for each layer, one graph.
class ActEngine final : public CudaEngine {
 public:
  // `options` as resolved. Throws Error for a shape no kernel supports, or if memory is short.
  ActEngine(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);
  ~ActEngine() override;

  void Launch(const PolicyInput& input, PolicyTrace* trace) override;
  void Wait(PolicyOutput& output) override;
  std::string PlanText() const override;
  bool WeightsIntact() const override { return weights_->Intact(); }

 private:
  void Plan();
  void PlanShares();
  // Environments of share `i` of the pictures and of those before; one share: all.
  int ShareEnd(int i) const { return options_.batch * (i + 1) / shares_; }
  // Pictures to the encoder's input, and its head, of one share.
  void EnqueueShare(int share);
  // The encoder in all its shares; or what follows their heads, where these ran.
  void EnqueueEncoder(bool heads_ran);
  // Sends the pictures share by share, each with the graph of its head behind it.
  void LaunchShares(const PolicyInput& input);
  void EnqueueInputs(PictureSource source);
  // With a trace the intermediates go there, at once.
  void Enqueue(PictureSource source, bool heads_ran, PolicyTrace* trace);
  void RunTraced(PolicyTrace& trace);
  int Cells() const;  // of a camera's last feature map

  const ActPolicyConfig& config_;
  const Format format_;
  cpu::ThreadPool pool_;  // copies pictures
  std::shared_ptr<const DeviceAct> weights_;
  std::unique_ptr<const GpuSceneDrawer> drawer_;
  DeviceArena arena_;  // of all that follows
  InputBlock input_;
  std::unique_ptr<EncoderLayers> backbone_;  // null without cameras
  TokenLaunches projection_;                 // of the backbone's maps to tokens
  std::unique_ptr<ActLaunches> transformer_;
  DecisionTiming timing_;
  PinnedArray<float> host_actions_;
  CudaStream stream_ = MakeCudaStream();
  int shares_ = 1;  // of a batch's large pictures
  CudaStream upload_stream_;
  std::vector<CudaEvent> sent_;  // each share; none where there is one alone
  DecisionGraphs graphs_;
  int count_ = 0;  // environments of the decision under way
};

// What the table of networks has of ACT.
extern const CudaNetwork kActOnCuda;

// How an ACT policy would run on the GPU called `gpu`, for some numbers of environments. Throws
// Error for an unknown GPU.
Json ActPlans(const Checkpoint& checkpoint, const std::string& gpu);

}  // namespace mjp

#endif  // POLICY_CUDA_ACT_ACT_ENGINE_H_

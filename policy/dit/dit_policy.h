#ifndef POLICY_DIT_DIT_POLICY_H_
#define POLICY_DIT_DIT_POLICY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policy/cpu/picture_input.h"
#include "policy/dit/clip_tower.h"
#include "policy/dit/dit_model.h"
#include "policy/dit/trunk.h"
#include "policy/policy.h"
#include "policy/sampler.h"

namespace mjp::cpu {

// All weights of a multi_task_dit checkpoint, packed for this processor.
struct PackedDit {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::vector<PackedVision> vision;  // one, or one per camera
  PackedText text;
  ConvLayer text_projection;
  PackedTrunk trunk;
};

// The policy on the CPU, in float32.
class DitPolicy : public Policy, private StepNetwork {
 public:
  // `options` as resolved. Throws Error for options that are not supported.
  DitPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);

  void Infer(const PolicyInput& input, PolicyOutput& output) override;
  std::string Description() const override;

 private:
  void Evaluate(const float* x, const int* step, const int* environment, int rows,
                float* output) override;
  // Fills features_ from RGB frames (N, To, cameras, height, width, 3).
  void EncodeFrames(const uint8_t* frames, int count, StageTimes& times);
  // The tokens of environment n's instruction. Throws Error without a tokenizer.
  std::vector<int> TextIds(const PolicyInput& input, int n) const;
  // The projected feature of a text, made once for each.
  const std::vector<float>& TextFeature(const std::vector<int>& ids);
  // Fills cond_: for each step state, the cameras' features, text.
  void FillCondition(const PolicyInput& input, StageTimes& times);
  void AssembleCondition(const PolicyInput& input);
  // Adds what the goldens have beyond the fields of the trace, under their names.
  void CompleteTrace(int count, PolicyTrace& trace) const;

  ThreadPool pool_;
  const DitModel& model_;
  std::shared_ptr<const PackedDit> networks_;
  std::vector<DenoiseStep> schedule_;  // of diffusion; empty for flow matching
  std::vector<double> pass_times_;     // of the network's passes, as the sampler names them
  std::unique_ptr<Sampler> sampler_;
  std::vector<PictureInput> pictures_;  // one per camera
  std::vector<VisionTower> towers_;     // one, or one per camera
  std::unique_ptr<Trunk> trunk_;
  std::map<std::vector<int>, std::vector<float>> texts_;  // features of the instructions so far
  std::vector<uint8_t> frames_;                           // drawn from scenes
  AlignedBuffer features_;                                // (cameras, batch * To, vision width)
  AlignedBuffer cond_;                                    // (batch, CondDim())
  AlignedBuffer x_;                                       // (batch, horizon * action_dim)
  StageTimes* times_ = nullptr;                           // of the decision under way
};

std::unique_ptr<Policy> MakeDitPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                      const PolicyOptions& options);

}  // namespace mjp::cpu

#endif  // POLICY_DIT_DIT_POLICY_H_

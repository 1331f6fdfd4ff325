#ifndef POLICY_DIT_DIT_POLICY_H_
#define POLICY_DIT_DIT_POLICY_H_

#include <map>
#include <memory>
#include <vector>

#include "policy/cpu/denoising_policy.h"
#include "policy/cpu/picture_input.h"
#include "policy/dit/clip_tower.h"
#include "policy/dit/dit_model.h"
#include "policy/dit/trunk.h"

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
class DitPolicy : public DenoisingPolicy {
 public:
  // `options` as resolved. Throws Error for options that are not supported.
  DitPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);

 private:
  void Forward(const float* x, const int* step, const int* environment, int rows,
               float* output) override;
  void Condition(std::span<const float> cond, int count) override;
  int FramesAtOnce(size_t camera) const override;
  void PrepareFrames(size_t camera, const uint8_t* frames, int64_t stride, int count) override;
  void EncodePrepared(size_t camera, int count, float* features) override;
  // For each step state, the cameras' features, text.
  void AssembleCondition(const PolicyInput& input) override;
  // What the goldens have, under their names.
  void CompleteTrace(int count, PolicyTrace& trace) const override;
  // The tokens of environment n's instruction. Throws Error without a tokenizer.
  std::vector<int> TextIds(const PolicyInput& input, int n) const;
  // The projected feature of a text, made once for each.
  const std::vector<float>& TextFeature(const std::vector<int>& ids);

  const DitModel& model_;
  std::shared_ptr<const PackedDit> networks_;
  std::vector<double> pass_times_;      // of the network's passes, as the sampler names them
  std::vector<PictureInput> pictures_;  // one per camera
  std::vector<VisionTower> towers_;     // one, or one per camera
  std::unique_ptr<Trunk> trunk_;
  std::map<std::vector<int>, std::vector<float>> texts_;  // features of the instructions so far
};

std::unique_ptr<Policy> MakeDitPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                      const PolicyOptions& options);

}  // namespace mjp::cpu

#endif  // POLICY_DIT_DIT_POLICY_H_

#ifndef POLICY_DIT_DIT_POLICY_H_
#define POLICY_DIT_DIT_POLICY_H_

#include <memory>
#include <optional>
#include <vector>

#include "policy/cpu/denoising_policy.h"
#include "policy/cpu/picture_input.h"
#include "policy/dit/packed_dit.h"
#include "policy/dit/text_features.h"

namespace mjp::cpu {

// The policy on the CPU, in float32.
class DitPolicy : public DenoisingPolicy {
 public:
  // `options` as resolved. Throws Error for options that are not supported.
  DitPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);

 private:
  void MakePictures();
  void Forward(const float* x, const int* step, const int* environment, int rows,
               float* output) override;
  void SetConditioning(std::span<const float> cond, int count) override;
  int FramesAtOnce(size_t camera) const override;
  void PrepareFrames(size_t camera, const uint8_t* frames, int64_t stride, int count) override;
  void EncodePrepared(size_t camera, int count, float* features) override;
  // For each step state, the cameras' features, text.
  void AssembleConditioning(const PolicyInput& input) override;
  // What the goldens have, under their names.
  void CompleteTrace(int count, PolicyTrace& trace) const override;

  const DitModel& model_;
  std::shared_ptr<const PackedDit> networks_;
  std::vector<Encoder> encoders_;       // of dit_compact, one per camera; then no towers
  std::vector<PictureInput> pictures_;  // one per camera
  std::vector<VisionTower> towers_;     // one, or one per camera
  std::unique_ptr<Trunk> trunk_;
  std::optional<TextFeatures> texts_;  // none without text
};

std::unique_ptr<Policy> MakeDitPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                      const PolicyOptions& options);

}  // namespace mjp::cpu

#endif  // POLICY_DIT_DIT_POLICY_H_

#ifndef POLICY_CUDA_DIT_TEXT_TERMS_H_
#define POLICY_CUDA_DIT_TEXT_TERMS_H_

#include <span>
#include <vector>

#include "policy/cuda/dit/device_dit.h"

namespace mjp {

// What the instructions add to the modulation of all blocks. An instruction stays for many
// decisions, and its columns are two fifths of the weights of LeRobot's default.
class TextTerms {
 public:
  // For `environments` environments of a network with text. `weights` and `config` outlive it.
  TextTerms(const DeviceDit& weights, const DitConfig& config, Format format, int environments,
            DeviceArena& arena);

  const float* terms() const { return static_cast<const float*>(product_.y); }
  // Features (environments, steps, TextDim()) of the next decisions. Where they are others than
  // before, enqueues their terms.
  void Set(std::span<const float> features, const DeviceArena& arena, cudaStream_t stream);
  // The same with what conditioning vectors (environments, CondDim()) hold of them.
  void SetFromConditioning(std::span<const float> cond, const DeviceArena& arena,
                           cudaStream_t stream);

 private:
  const DitConfig& config_;
  Format format_;
  int environments_;
  std::vector<float> features_;  // of the terms on the device; empty: none yet
  float *device_features_, *scratch_;
  int* zero_;  // a flag that is never set
  void* activated_;
  ConvArgs product_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DIT_TEXT_TERMS_H_

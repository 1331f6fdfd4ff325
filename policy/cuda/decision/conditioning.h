#ifndef POLICY_CUDA_DECISION_CONDITIONING_H_
#define POLICY_CUDA_DECISION_CONDITIONING_H_

#include <span>

#include "policy/cuda/decision/input_block.h"
#include "policy/cuda/decision/picture_encoders.h"
#include "policy/cuda/unet/film.h"

namespace mjp {

// The conditioning vector of every environment, from observations and features or as given, and
// what of FiLM depends on it alone: once per decision.
class Conditioning {
 public:
  Conditioning(const UnetPolicyConfig& config, Format format, int environments)
      : config_(config), format_(format), environments_(environments) {}

  void Plan(DeviceArena& arena);
  // Enqueues the vector and its FiLM terms into `film`.
  void Enqueue(const InputBlock& input, const PictureEncoders& pictures,
               const FilmConditioning& film, cudaStream_t stream) const;
  // Puts a vector (environments, CondDim()) from outside on the device, for decisions that take it.
  void UploadGiven(std::span<const float> cond, DeviceArena& arena) const;
  // Enqueues the copy of the vectors of the first environments to `cond`.
  void Fetch(std::span<float> cond, cudaStream_t stream) const;

 private:
  const UnetPolicyConfig& config_;
  Format format_;
  int environments_;
  float *cond_ = nullptr, *given_ = nullptr;  // (environments, CondDim())
};

}  // namespace mjp

#endif  // POLICY_CUDA_DECISION_CONDITIONING_H_

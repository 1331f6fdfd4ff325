#ifndef POLICY_CUDA_UNET_UNET_PASS_H_
#define POLICY_CUDA_UNET_UNET_PASS_H_

#include "policy/cuda/unet/film.h"

namespace mjp {

// The launches of one U-Net pass over a number of rows (x_t, t), and their memory.
class UnetPass {
 public:
  virtual ~UnetPass() = default;

  virtual void* input() const = 0;  // (rows, horizon, input_pitch), storage; zeros beyond x
  virtual int input_pitch() const = 0;
  virtual float* output() const = 0;  // (rows, horizon, action_dim)
  // What depends on the conditioning vector alone, to be run once per decision.
  virtual const FilmConditioning& conditioning() const = 0;
  // Enqueues one pass; row_step (rows) holds each row's timestep, in device memory.
  virtual void RunPass(const int* row_step, cudaStream_t stream) const = 0;
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_UNET_PASS_H_

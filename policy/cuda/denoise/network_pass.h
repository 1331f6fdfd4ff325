#ifndef POLICY_CUDA_DENOISE_NETWORK_PASS_H_
#define POLICY_CUDA_DENOISE_NETWORK_PASS_H_

#include "kernels/cuda/sampler/timestamp.cuh"
#include "kernels/shared/denoise.h"
#include "policy/cuda/unet/film.h"

namespace mjp {

// The launches of one pass of a denoising network over a number of rows (x_t, t), and their memory.
class NetworkPass {
 public:
  virtual ~NetworkPass() = default;

  virtual void* input() const = 0;  // (rows, horizon, input_pitch), storage; zeros beyond x
  virtual int input_pitch() const = 0;
  virtual float* output() const = 0;  // (rows, horizon, action_dim)
  // What depends on the conditioning vector alone, to be run once per decision.
  virtual const FilmConditioning& conditioning() const = 0;
  // Enqueues one pass; row_step (rows) holds each row's timestep, in device memory.
  virtual void RunPass(const int* row_step, cudaStream_t stream) const = 0;
  // Enqueues the steps [begin, end) of `steps` on x (rows, horizon * action_dim), device memory,
  // with noise (steps, rows, horizon * action_dim) or null; the end of step k is timestamp k + 1.
  // False, and nothing, where passes are launched one by one.
  virtual bool RunSteps(const DenoiseStep* /*steps*/, const float* /*noise*/, float* /*x*/,
                        int /*begin*/, int /*end*/, const TimestampList& /*timestamps*/,
                        cudaStream_t /*stream*/) const {
    return false;
  }
  // Host memory that becomes 1 where a launch stood still; null: no block waits for another one.
  virtual const int* timed_out() const { return nullptr; }
};

}  // namespace mjp

#endif  // POLICY_CUDA_DENOISE_NETWORK_PASS_H_

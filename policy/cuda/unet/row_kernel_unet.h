#ifndef POLICY_CUDA_UNET_ROW_KERNEL_UNET_H_
#define POLICY_CUDA_UNET_ROW_KERNEL_UNET_H_

#include <vector>

#include "kernels/cuda/primitives/cuda_raii.h"
#include "policy/cuda/denoise/network_pass.h"
#include "policy/cuda/unet/row_kernel_plan.h"

namespace mjp {

// The weights of `unet` in the order of the plan's layers.
std::vector<row_kernel::ConvolutionWeights> RowKernelWeights(const NormConvUnet& unet);

// A pass, or a chain of them, in one launch of the row kernel.
class RowKernelUnet final : public NetworkPass {
 public:
  // Row r is of environment r / rows_per_env. `first`: of the same network, whose weights and
  // conditioning this one borrows; or null.
  RowKernelUnet(const NormConvUnet& unet, Format format, int horizon, const RowKernelPlan& planned,
                int rows, int rows_per_env, DeviceArena& arena,
                const RowKernelUnet* first = nullptr);

  void* input() const override { return input_; }
  int input_pitch() const override { return input_pitch_; }
  float* output() const override { return args_.output; }
  const FilmConditioning& conditioning() const override { return conditioning_; }
  void RunPass(const int* row_step, cudaStream_t stream) const override;
  bool RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin, int end,
                const TimestampList& timestamps, cudaStream_t stream) const override;
  const row_kernel::Args& args() const { return args_; }
  const int* timed_out() const override { return args_.timed_out; }

 private:
  void TakeMailboxes(const row_kernel::Plan& plan, DeviceArena& arena);
  void Launch(const row_kernel::Args& args, cudaStream_t stream) const;

  Format format_;
  FilmConditioning conditioning_;
  void* input_ = nullptr;
  int input_pitch_ = 0;
  row_kernel::Args args_;
  PinnedArray<int> timed_out_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_ROW_KERNEL_UNET_H_

#ifndef POLICY_CUDA_DIT_SEQUENCE_PASS_H_
#define POLICY_CUDA_DIT_SEQUENCE_PASS_H_

#include "kernels/cuda/primitives/cuda_raii.h"
#include "kernels/cuda/sequence_kernel/sequence_kernel.cuh"
#include "policy/cuda/denoise/network_pass.h"
#include "policy/cuda/dit/device_dit.h"
#include "policy/cuda/execution_plan.h"

namespace mjp {

// Whether the sequence kernel runs passes of `rows` rows through the trunk of `config` on `gpu`: it
// has a form for the shape, and all of the clusters run at once. More rows fill the GPU with a
// launch for each layer.
bool SequenceKernelRuns(const DitConfig& config, Format format, int rows, const GpuTraits& gpu);

// The same of its form with eight clusters for each sequence.
bool SequenceClustersRun(const DitConfig& config, Format format, int rows, const GpuTraits& gpu);

// A pass of multi_task_dit's transformer, or all steps of a chain, as one launch of the sequence
// kernel, in one of its two forms.
class SequencePass final : public NetworkPass {
 public:
  // `rows` rows, each of environment row / rows_per_environment of `conditioning`. The weights are
  // packed into `arena`, or are those of `first`; across clusters they are read as they are.
  SequencePass(const DeviceDit& weights, const DitConfig& config, Format format, int rows,
               const FilmConditioning& conditioning, DeviceArena& arena, DitForm form,
               const SequencePass* first = nullptr);

  void* input() const override { return input_; }
  int input_pitch() const override { return args_.storage_pitch; }
  float* output() const override { return args_.output; }
  const FilmConditioning& conditioning() const override { return conditioning_; }
  void RunPass(const int* row_step, cudaStream_t stream) const override;
  bool RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin, int end,
                const TimestampList& timestamps, cudaStream_t stream) const override;
  const int* timed_out() const override { return args_.timed_out; }

 private:
  void Pack(const sequence_kernel::BlockWeights* blocks, DeviceArena& arena);
  void TakeMailboxes(const sequence_kernel::BlockWeights* blocks, DeviceArena& arena);
  void Launch(const sequence_kernel::Args& args, cudaStream_t stream) const;

  Format format_;
  DitForm form_;
  FilmConditioning conditioning_;
  void* input_;
  PinnedArray<int> timed_out_;
  sequence_kernel::Args args_;  // without what a pass or a chain has of its own
};

}  // namespace mjp

#endif  // POLICY_CUDA_DIT_SEQUENCE_PASS_H_

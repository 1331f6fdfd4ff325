#ifndef POLICY_CUDA_DIT_DIT_PASS_H_
#define POLICY_CUDA_DIT_DIT_PASS_H_

#include "policy/cuda/denoise/network_pass.h"
#include "policy/cuda/dit/device_dit.h"

namespace mjp {

// The launches of one pass of multi_task_dit's transformer, and their memory. AdaLN's terms are
// split as FiLM's are: a table of the times and, once for a decision, a product of the condition.
class DitPass final : public NetworkPass {
 public:
  // `rows` rows, each of environment row / rows_per_environment of `conditioning`.
  DitPass(const DeviceDit& weights, const DitConfig& config, Format format, int rows,
          const FilmConditioning& conditioning, DeviceArena& arena);

  void* input() const override { return input_; }
  int input_pitch() const override { return PaddedChannels(config_.action_dim); }
  float* output() const override { return output_; }
  const FilmConditioning& conditioning() const override { return conditioning_; }
  void RunPass(const int* row_step, cudaStream_t stream) const override {
    launches_.Run(stream, row_step);
  }

 private:
  // Adds the branch with the term `gate` of all blocks' terms, and makes what is read next,
  // modulated by the terms `shift` and the one after it. Before the first block there is no branch;
  // after the last one what is read is the sum.
  TokenNormArgs Norm(int gate, int shift) const;
  void AddNorm(int gate, int shift);
  void Attend();
  void Block(const DeviceDitBlock& block, int index);
  void End(int gate);

  const DeviceDit& weights_;
  const DitConfig& config_;
  Format format_;
  int rows_;
  FilmConditioning conditioning_;
  TokenLaunches launches_;
  void *input_, *y_, *qkv_, *heads_, *branch_, *hidden_;
  float *x_, *output_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DIT_DIT_PASS_H_

#ifndef POLICY_DIT_TRUNK_H_
#define POLICY_DIT_TRUNK_H_

#include <optional>
#include <span>
#include <vector>

#include "policy/cpu/tokens.h"
#include "policy/dit/dit_weights.h"
#include "policy/dit/tap.h"

// The denoising transformer of multi_task_dit on the CPU. Time and observation enter through the
// modulation of the norms (AdaLN) alone, whose linear layer is split:
//   Linear(SiLU([time; cond])) = W_t SiLU(time) + b + W_c SiLU(cond),
// so that the first part is a table made once and the second is made once for a decision.

namespace mjp::cpu {

struct PackedTrunk {
  struct Block {
    ConvLayer of_time, of_cond;  // of the modulation: the first with its bias
    ConvLayer qkv, out, mlp1, mlp2;
  };
  ConvLayer time1, time2, input, output;
  AlignedBuffer position;             // (horizon, D); empty without
  std::optional<RotaryTable> rotary;  // none without RoPE
  std::vector<Block> blocks;
};

PackedTrunk PackTrunk(const DitConfig& config, const DitWeights& weights);

class Trunk {
 public:
  // Makes room for `rows` rows and `environments` environments. `times` are those that Forward will
  // name by index: timesteps of diffusion, or flow matching's 0 ... 1. `weights` outlives it.
  Trunk(const PackedTrunk& weights, const DitConfig& config, const std::vector<double>& times,
        int rows, int environments, ThreadPool& pool);

  // What the times alone add to the modulation of block i, with its bias: (times, 6 D).
  const float* time_terms(size_t i) const { return time_terms_[i].data(); }

  // Prepares the environments' conditioning vectors, cond (count, CondDim()).
  void SetConditioning(std::span<const float> cond, int count);

  // output (rows, horizon, action_dim) = network(x), where row r stands at times[time[r]] of
  // environment[r]. A row's result does not depend on the others.
  void Forward(const float* x, const int* time, const int* environment, int rows, float* output,
               const Tap& tap = {});

 private:
  // Fills modulation_ (rows, 6 D) for block i.
  void Modulate(size_t i, const int* time, const int* environment, int rows);
  // x_ = x_ + gate f(LN(x_) (1 + scale) + shift) for the attention, then for the MLP.
  void Attention(const PackedTrunk::Block& block, int rows);
  void Mlp(const PackedTrunk::Block& block, int rows);
  void ModulatedNorm(int first_term, int rows);
  void AddGated(int gate_term, int rows);

  const PackedTrunk& weights_;
  ThreadPool& pool_;
  int horizon_, action_dim_, width_, heads_, cond_dim_;
  AlignedBuffer time_features_;            // (times, E)
  std::vector<AlignedBuffer> time_terms_;  // of each block: (times, 6 D)
  std::vector<AlignedBuffer> cond_terms_;  // of each block: (environments, 6 D)
  AlignedBuffer cond_silu_;                // (environments, cond_dim)
  AlignedBuffer modulation_;               // (rows, 6 D)
  AlignedBuffer x_, norm_, qkv_, heads_out_, out_, mlp_, scratch_;  // (rows * horizon, ...)
};

}  // namespace mjp::cpu

#endif  // POLICY_DIT_TRUNK_H_

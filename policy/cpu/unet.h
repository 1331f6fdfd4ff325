#ifndef POLICY_CPU_UNET_H_
#define POLICY_CPU_UNET_H_

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "policy/checkpoint/network.h"
#include "policy/cpu/layers.h"

namespace mjp::cpu {

struct UnetBlock {
  ConvLayer conv1, conv2;
  NormLayer norm1, norm2;
  std::optional<ConvLayer> residual;
  int film = 0;  // offset of this block's terms among all FiLM terms
};

// Weights of the conditional U-Net, packed. Immutable, shared by all policies of a checkpoint.
// FiLM is split: Linear(Mish([step; cond])) = film_step(Mish(step)) + film_cond(Mish(cond)).
struct PackedUnet {
  struct Level {
    UnetBlock block1, block2;
    std::optional<ConvLayer> resample;
  };
  ConvLayer time1, time2;
  std::vector<Level> down, up;
  UnetBlock mid1, mid2;
  ConvLayer final_conv, out;
  NormLayer final_norm;
  ConvLayer film_step, film_cond;  // (film_width, step_embed_dim) with the bias, (.., cond_dim)
  int film_width = 0;
  bool film_scale = true;
};

std::shared_ptr<const PackedUnet> PackUnet(const UnetPolicyConfig& config,
                                           const UnetWeights& weights);

// The U-Net on the CPU: rows of a batch, each with its own x, denoising step and environment.
class Unet {
 public:
  // Makes room for `rows` rows and `environments` environments; `timesteps` are the steps that
  // Forward will name by index. Throws Error for a horizon the levels do not divide.
  Unet(std::shared_ptr<const PackedUnet> weights, const UnetPolicyConfig& config,
       const std::vector<int>& timesteps, int rows, int environments, ThreadPool& pool);

  // Prepares the environments' conditioning vectors, cond (count, CondDim()).
  void SetConditioning(std::span<const float> cond, int count);

  // output (rows, horizon, action_dim) = network(x), where row r stands at timesteps[step[r]] of
  // environment[r]. A row's result does not depend on the others.
  void Forward(const float* x, const int* step, const int* environment, int rows, float* output);

 private:
  struct Level;  // of the way down or up: its maps

  void Block1d(const UnetBlock& block, const Features& x, const Features& middle,
               const Features& residual, const Features& y);
  void Resample(const ConvLayer& layer, const Features& x, const Features& y);
  FilmArgs Film(const UnetBlock& block) const;

  std::shared_ptr<const PackedUnet> weights_;
  ThreadPool& pool_;
  int action_dim_, cond_dim_;
  AlignedBuffer step_table_;                                   // (timesteps, film_width)
  AlignedBuffer cond_mish_;                                    // (environments, cond_dim)
  AlignedBuffer film_cond_;                                    // (environments, film_width)
  std::vector<OwnedFeatures> input_;                           // of each level of the way down
  std::vector<OwnedFeatures> middle_;                          // inside a block, per level
  std::vector<OwnedFeatures> first_;                           // after a level's first block
  std::vector<OwnedFeatures> side_;                            // residual convolutions
  std::vector<OwnedFeatures> joined_;                          // [x, skip], per level
  std::vector<OwnedFeatures> up_middle_, up_first_, up_side_;  // of the way up to level i - 1
  OwnedFeatures final_input_;
  const int *step_ = nullptr, *environment_ = nullptr;  // of the current Forward
  int rows_ = 0;
};

}  // namespace mjp::cpu

#endif  // POLICY_CPU_UNET_H_

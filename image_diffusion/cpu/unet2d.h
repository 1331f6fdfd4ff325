#ifndef IMAGE_DIFFUSION_CPU_UNET2D_H_
#define IMAGE_DIFFUSION_CPU_UNET2D_H_

#include <memory>
#include <optional>
#include <vector>

#include "image_diffusion/model.h"
#include "image_diffusion/step_table.h"
#include "policy/cpu/layers.h"

namespace mjp::cpu {

// The image U-Net on the CPU. One caller at a time.
class Unet2d {
 public:
  // Packs the weights and makes room for `rows` pictures; `timesteps` are the steps that Forward
  // names by index.
  Unet2d(const ImageModel& model, const std::vector<int>& timesteps, int rows, ThreadPool& pool);

  // output (rows, size, size, channels) = network(x), row r at timesteps[step[r]]. A row's result
  // does not depend on the others.
  void Forward(const float* x, const int* step, int rows, float* output);

 private:
  struct BlockLayers {
    ConvLayer conv1, conv2;
    NormLayer norm1, norm2;
    std::optional<ConvLayer> residual;
    OwnedFeatures middle, side, out;
    int film = 0;  // offset of its terms in the table
    bool film_scale = true;
  };
  struct Level {
    BlockLayers block1, block2;
    std::optional<ConvLayer> resample = {};
    OwnedFeatures joined = {}, resampled = {},
                  doubled = {};  // [x, skip]; after the convolution; before it
  };

  BlockLayers MakeBlock(const ResidualBlock1d& block, int rows, int size);
  Level MakeLevel(const UnetLevel& level, int rows, int size, bool up);
  Features Run(const BlockLayers& block, const Features& x);
  Features Apply(const ConvLayer& conv, const Features& x, const Features& y);
  Features WithRows(const OwnedFeatures& maps) const { return WithBatch(maps.view, rows_); }

  ThreadPool& pool_;
  StepTable table_;
  std::vector<float> no_condition_;  // zeros: the FiLM terms have no second part
  std::vector<int> environment_;     // zeros, likewise
  size_t blocks_ = 0;                // made so far
  OwnedFeatures input_, last_;
  std::vector<Level> down_, up_;
  BlockLayers mid1_, mid2_;
  ConvLayer final_conv_, out_;
  NormLayer final_norm_;
  const int* step_ = nullptr;  // of the current Forward
  int rows_ = 0;
};

}  // namespace mjp::cpu

#endif  // IMAGE_DIFFUSION_CPU_UNET2D_H_

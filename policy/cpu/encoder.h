#ifndef POLICY_CPU_ENCODER_H_
#define POLICY_CPU_ENCODER_H_

#include <memory>
#include <optional>
#include <vector>

#include "kernels/cpu/winograd/winograd.h"
#include "policy/checkpoint/network.h"
#include "policy/cpu/layers.h"
#include "policy/cpu/picture_input.h"

namespace mjp::cpu {

// Weights of one picture encoder, packed. Immutable, shared by all policies of a checkpoint.
struct PackedEncoder {
  struct Block {
    ConvLayer conv1, conv2;
    NormLayer norm1, norm2;
    std::optional<ConvLayer> downsample;
    NormLayer downsample_norm;
    // in place of conv1 and conv2, which then have no weights
    std::optional<WinogradLayer> winograd1, winograd2;
  };
  ConvLayer stem;
  NormLayer stem_norm;
  std::vector<Block> blocks;
  std::optional<ConvLayer> pool_conv, out;
  AlignedBuffer pos_grid;  // (cells, 2)
};

// How convolutions of 3x3 and stride 1 are computed: their bits differ.
enum class Conv3x3 { kDirect, kWinograd };

// kWinograd: for encoders without norms whose convolutions have a bias.
std::shared_ptr<const PackedEncoder> PackEncoder(const EncoderConfig& config,
                                                 const EncoderWeights& weights,
                                                 Conv3x3 form = Conv3x3::kDirect);

// A picture encoder on the CPU: prepared frames in, features out.
class Encoder {
 public:
  // Frames of `camera` as they come; makes room for `frames` at a time.
  Encoder(std::shared_ptr<const PackedEncoder> weights, const EncoderConfig& config,
          const CameraFeature& camera, const FeatureStats& stats, int frames, ThreadPool& pool);

  // Frames at a time.
  int capacity() const { return pictures_.capacity(); }
  // Normalises, resizes and crops `count` RGB frames, frame_stride bytes apart.
  void Prepare(const uint8_t* rgb, int64_t frame_stride, int count);
  // features (count, feature_dim) of the frames prepared; with PoolKind::kNone none are written.
  void Encode(int count, float* features);

  // The prepared frames, and the last feature map of the frames encoded.
  const Features& input() const { return pictures_.view(); }
  const Features& feature_map() const { return outputs_.back(); }
  // (frames, channels, 2) of the frames encoded; spatial softmax only.
  const AlignedBuffer& keypoints() const { return pooled_; }

 private:
  struct Stage {  // maps of one block, in the shape of its output
    OwnedFeatures middle, side, output;
  };

  void ConvNorm(const ConvLayer& conv, const NormLayer& norm, const Features& x, const Features& y,
                Activation activation);
  void Winograd(const WinogradLayer& layer, const Features& x, const Features& y,
                const Features& residual);
  void BasicBlock(const PackedEncoder::Block& block, const Features& x, Stage& stage);
  void Pool(const Features& map, int count, float* features);

  std::shared_ptr<const PackedEncoder> weights_;
  EncoderConfig config_;
  ThreadPool& pool_;
  PictureInput pictures_;
  OwnedFeatures stem_, pooled_stem_;
  std::vector<Stage> stages_;  // one per block
  std::vector<Features> outputs_;
  OwnedFeatures logits_;     // of the 1x1 convolution before the pool
  AlignedBuffer pooled_;     // what the last linear layer reads
  AlignedBuffer scratch_;    // of the threads' Winograd convolutions
  size_t scratch_size_ = 0;  // of one thread
  int count_ = 0;            // frames of the current Encode
};

}  // namespace mjp::cpu

#endif  // POLICY_CPU_ENCODER_H_

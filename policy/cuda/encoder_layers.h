#ifndef POLICY_CUDA_ENCODER_LAYERS_H_
#define POLICY_CUDA_ENCODER_LAYERS_H_

#include <optional>
#include <variant>
#include <vector>

#include "policy/checkpoint/network.h"
#include "policy/cuda/layers.h"

namespace mjp {

struct DeviceBasicBlock2d {
  DeviceConv conv1, conv2;
  DeviceNorm norm1, norm2;
  std::optional<DeviceConv> downsample;
  DeviceNorm downsample_norm;
};

// One picture encoder's weights on the device.
struct DeviceEncoder {
  DeviceConv stem;
  bool space_to_depth = false;  // the stem reads 2x2 pixels in one place (see PrepareArgs)
  DeviceNorm stem_norm;
  std::vector<DeviceBasicBlock2d> blocks;
  std::optional<DeviceConv> pool_conv, out;
  const float* pos_grid = nullptr;
};

// Packs an encoder of pictures of this size, before any crop. Throws Error for a shape the kernels
// do not support.
DeviceEncoder LoadDeviceEncoder(LayerLoader& loader, const EncoderConfig& config,
                                const EncoderWeights& weights, int picture_height,
                                int picture_width);

// A launch that makes each picture's map from that picture's alone.
using MapOp = std::variant<ConvArgs, StemMaxPoolArgs>;

// The launches that turn `frames` prepared pictures into features, and their memory.
class EncoderLayers {
 public:
  EncoderLayers(const DeviceEncoder& encoder, const EncoderConfig& config, Format format,
                int frames, int height, int width, DeviceArena& arena);

  void* input() const { return input_; }         // prepared pictures (see PrepareArgs), storage
  float* features() const { return features_; }  // (frames, feature_dim); null: PoolKind::kNone
  // The last map, (frames, height, width, channels) in storage; written for PoolKind::kNone.
  const void* map() const { return Data(map_); }
  int map_height() const { return map_.height; }
  int map_width() const { return map_.width; }
  int map_channels() const { return map_.channels; }
  // Enqueues the encoder.
  void Run(cudaStream_t stream) const;
  // The same in two parts: the head, up to the first stage, for `count` pictures from `first` on,
  // and the rest for all. So the first pictures' heads run while others are on their way.
  bool has_head() const { return !head_.empty(); }
  void RunHead(int first, int count, cudaStream_t stream) const;
  void RunRest(cudaStream_t stream) const;
  const std::vector<Op>& ops() const { return ops_; }

 private:
  struct Map {
    int buffer = -1;  // index into buffers_; -1: the input
    int height = 0, width = 0, channels = 0;
  };
  // Appends a convolution of `in` into buffer `to`.
  Map Convolve(const DeviceConv& conv, const Map& in, int to, bool relu, const Map* residual);
  // The same with the norm behind it, if there is one, before residual and ReLU.
  Map ConvolveNormalise(const DeviceConv& conv, const DeviceNorm& norm, const Map& in, int to,
                        bool relu, const Map* residual);
  // Appends what follows the stem's convolution: norm, if any, ReLU and max-pool.
  Map PoolStem(const DeviceNorm& norm, const Map& in);
  void Normalise(const DeviceNorm& norm, const Map& map, bool relu, const Map* residual);
  // Appends stem and residual blocks.
  Map StemAndBlocks(const DeviceEncoder& encoder, const EncoderConfig& config, const Map& in);
  // Appends the encoder kernel for all residual blocks, with the stem or without; none, and nothing
  // appended, where it does not take them.
  std::optional<Map> InOneLaunch(const DeviceEncoder& encoder, bool stem, const Map& in);
  Map Block(const DeviceBasicBlock2d& block, const Map& in);
  // Makes the launches so far the head.
  void EndHead();
  // What the launch does for `count` of its pictures, from `first` on.
  ConvArgs OfPictures(ConvArgs a, int first, int count) const;
  StemMaxPoolArgs OfPictures(StemMaxPoolArgs a, int first, int count) const;
  void Pool(const DeviceEncoder& encoder, const EncoderConfig& config, const Map& map,
            DeviceArena& arena);
  void* Data(const Map& map) const { return map.buffer < 0 ? input_ : buffers_[map.buffer]; }

  Format format_;
  int frames_;
  void *input_ = nullptr, *buffers_[4] = {};
  float* features_ = nullptr;
  Map map_;
  std::vector<Op> ops_;
  std::vector<MapOp> head_;  // the first of them; empty if another kind is among these
};

}  // namespace mjp

#endif  // POLICY_CUDA_ENCODER_LAYERS_H_

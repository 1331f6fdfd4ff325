#ifndef POLICY_CUDA_ACT_DEVICE_ACT_H_
#define POLICY_CUDA_ACT_DEVICE_ACT_H_

#include <memory>
#include <vector>

#include "policy/act/packed_act.h"
#include "policy/cuda/encoder_layers.h"
#include "policy/cuda/transformer/token_stream.h"

namespace mjp {

struct DeviceActSelf {
  DeviceNormedLinear in;  // q, k and v side by side
  DeviceConv out;
};

struct DeviceActCross {
  DeviceNormedLinear query, key_value;
  DeviceConv out;
};

struct DeviceActFeedForward {
  DeviceNormedLinear linear1;
  DeviceConv linear2;
};

struct DeviceActEncoderLayer {
  DeviceActSelf self;
  DeviceActFeedForward feed_forward;
  DeviceLayerNorm norm1, norm2;
};

struct DeviceActDecoderLayer {
  DeviceActSelf self;  // not of the first
  DeviceActCross cross;
  DeviceActFeedForward feed_forward;
  DeviceLayerNorm norm1, norm2, norm3;
};

// All weights of an ACT checkpoint in one format on the device, with what they alone decide as
// cpu::PackedAct has it; immutable once made.
class DeviceAct {
 public:
  DeviceAct(std::shared_ptr<const Checkpoint> checkpoint, Format format);
  // The one copy of (checkpoint, format) in this process.
  static std::shared_ptr<const DeviceAct> Get(const std::shared_ptr<const Checkpoint>& checkpoint,
                                              Format format);

  bool Intact() const { return arena_.HoldsUploads(); }
  const std::vector<float>& positions() const { return packed_->positions; }

  DeviceEncoder backbone;  // of every camera
  DeviceConv image;
  const float* picture_tables = nullptr;  // PrepareArgs::table
  std::vector<VectorToken> vectors;       // latent, state, environment; without their values
  std::vector<DeviceActEncoderLayer> encoder;
  std::vector<DeviceActDecoderLayer> decoder;
  DeviceLayerNorm encoder_norm, decoder_norm;
  DeviceConv head;
  // The first decoder layer after its self-attention, and the queries of its cross-attention:
  // (horizon, width), float32 and storage.
  const float* start = nullptr;
  const void* start_queries = nullptr;

 private:
  void Load(Format format);
  void LoadEncoderLayer(LayerLoader& loader, size_t i);
  void LoadDecoderLayer(LayerLoader& loader, size_t i);
  void LoadStart(LayerLoader& loader);

  const std::shared_ptr<const Checkpoint> checkpoint_;
  const std::shared_ptr<const cpu::PackedAct> packed_;
  DeviceArena arena_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_ACT_DEVICE_ACT_H_

#ifndef POLICY_CUDA_ACT_ACT_LAUNCHES_H_
#define POLICY_CUDA_ACT_ACT_LAUNCHES_H_

#include <string>

#include "policy/cuda/act/device_act.h"

namespace mjp {

// Where ACT's transformer finds what it reads, on the device.
struct ActInputs {
  const float *state = nullptr, *environment = nullptr;  // (environments, dim), normalised
  const void* maps = nullptr;  // (cameras, environments, cells, width), storage: projected
};

// ACT's transformer as launches, and their memory: tokens of all environments in, chunks out.
class ActLaunches {
 public:
  ActLaunches(const DeviceAct& weights, const ActPolicyConfig& config, Format format,
              int environments, const ActInputs& inputs, DeviceArena& arena);

  const TokenLaunches& launches() const { return launches_; }
  const float* actions() const { return actions_; }  // (environments, horizon, action_dim)

 private:
  // The residual stream of the encoder, or of the decoder.
  struct Stream {
    int rows;                      // of each environment
    float* x;                      // (environments, rows, width)
    void* y;                       // the same in storage, as the next sub-layer reads it
    const float* from;             // where x is at the moment: x itself, or
    int from_rows = 0;             // (from_rows, width), the same for all environments
    const void* branch = nullptr;  // a sub-layer's answer that is not in x yet
    std::string name;              // of x after the next sum; empty: none
  };

  int Rows(const Stream& s) const { return environments_ * s.rows; }
  Stream TakeStream(int rows, DeviceArena& arena);
  void PutTokens(const ActInputs& inputs, const Stream& s);
  // Adds the branch, and makes what the next sub-layer reads by `norm`. With norms after the
  // sub-layers the norm is the new x.
  void Norm(const DeviceLayerNorm& norm, Stream& s);
  void SelfAttention(const DeviceActSelf& layer, Stream& s);
  void CrossAttention(const DeviceActCross& layer, const DeviceRows& queries, const Stream& encoder,
                      Stream& s);
  void Attend(const DeviceRows& q, const DeviceRows& k, const DeviceRows& v, int queries, int keys,
              const DeviceConv& out);
  void FeedForward(const DeviceActFeedForward& layer, Stream& s);
  void Encode(Stream& s);
  void Decode(const Stream& encoder, Stream& s);
  void DecoderLayer(size_t index, const Stream& encoder, Stream& s);
  DeviceRows Part(const void* rows, int column, int pitch, int rows_each) const;

  const DeviceAct& weights_;
  const ActPolicyConfig& config_;
  Format format_;
  int environments_;
  TokenLaunches launches_;
  void *qkv_, *queries_, *context_, *branch_, *hidden_;
  float* actions_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_ACT_ACT_LAUNCHES_H_

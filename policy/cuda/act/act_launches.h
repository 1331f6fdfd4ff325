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
  // Of the encoder's tokens, or of the decoder's.
  TokenStream::Config StreamOf(int rows, bool is_encoder) const;
  void PutTokens(const ActInputs& inputs);
  // The attention's answer is in context_.
  void SelfAttention(const DeviceActSelf& layer, TokenStream& s);
  void CrossAttention(const DeviceActCross& layer, const DeviceRows& queries);
  void Attend(const DeviceRows& q, const DeviceRows& k, const DeviceRows& v, int queries, int keys);
  // The sub-layer, and the norm before what follows it.
  void FeedForward(const DeviceActFeedForward& layer, const DeviceLayerNorm& next, TokenStream& s);
  void Encode();
  void EncoderLayer(size_t index);
  // The queries of the first layer's cross-attention are weights.
  DeviceRows DecoderQueries(size_t index);
  void DecoderLayer(size_t index);
  DeviceRows Part(const void* rows, int column, int pitch, int rows_each) const;
  int RowsEach(const TokenStream& s) const { return s.rows() / environments_; }

  const DeviceAct& weights_;
  const ActPolicyConfig& config_;
  Format format_;
  int environments_;
  TokenLaunches launches_;
  TokenStream encoder_, decoder_;
  void *qkv_, *queries_, *context_, *hidden_;
  float* actions_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_ACT_ACT_LAUNCHES_H_

#ifndef POLICY_ACT_ACT_CONFIG_H_
#define POLICY_ACT_ACT_CONFIG_H_

#include "base/json_forward.h"
#include "base/key_reader.h"
#include "kernels/shared/token_activation.h"
#include "policy/checkpoint/config.h"

namespace mjp {

// LeRobot's "act": Action Chunking with Transformers. Names follow LeRobot's ACTConfig; the horizon
// is its chunk_size.
struct ActPolicyConfig : PolicyConfig {
  int resnet = 18;        // layers of the backbone: 18 or 34
  bool pre_norm = false;  // norms before the sub-layers rather than after them
  int width = 512, heads = 8, feedforward = 3200;
  TokenActivation activation = TokenActivation::kRelu;
  int encoder_layers = 4, decoder_layers = 1;
  int latent_dim = 32;
  // of training alone: whether its tensors may be in the file, and how many layers they are
  bool vae = true;
  int vae_layers = 4;

  // Tokens before those of the pictures: latent, state, environment.
  int VectorTokens() const { return 1 + (state_dim > 0) + (environment_dim > 0); }
  // Tokens of one camera's picture, (height, width) of its last feature map.
  static int MapSize(int pixels) { return (pixels + 31) / 32; }
  int Tokens() const {
    int tokens = VectorTokens();
    for (const CameraFeature& camera : cameras)
      tokens += MapSize(camera.height) * MapSize(camera.width);
    return tokens;
  }
};

// Parses what the config.json of an ACT policy has beyond its features, which are in `features`.
// Throws Error that names the key for anything missing, out of range or unsupported.
ActPolicyConfig ParseActPolicy(KeyReader& keys, const PolicyConfig& features);
// And back: the members that not every policy has.
void AddActPolicy(const ActPolicyConfig& config, Json& json);

}  // namespace mjp

#endif  // POLICY_ACT_ACT_CONFIG_H_

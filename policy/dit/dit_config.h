#ifndef POLICY_DIT_DIT_CONFIG_H_
#define POLICY_DIT_DIT_CONFIG_H_

#include <optional>
#include <string>

#include "base/json_forward.h"
#include "base/key_reader.h"
#include "kernels/shared/token_activation.h"
#include "policy/checkpoint/config.h"

// What the config.json of LeRobot's multi_task_dit, or of this project's dit_compact, says beyond
// its features. Fields of the file keep LeRobot's names in the comments.

namespace mjp {

// A CLIP transformer. Of these the head count, the activation and epsilon do not follow from the
// tensors' shapes.
struct ClipTower {
  int width = 0, mlp = 0, layers = 0, heads = 0;
  TokenActivation activation = TokenActivation::kQuickGelu;
  float epsilon = 1e-5f;

  int HeadSize() const { return width / heads; }
};

struct ClipConfig {
  ClipTower vision = {.width = 768, .mlp = 3072, .layers = 12, .heads = 12};
  int patch = 16, image = 224;  // pixels of a side
  ClipTower text = {.width = 512, .mlp = 2048, .layers = 12, .heads = 8};
  int vocabulary = 49408, positions = 77;

  int Patches() const { return (image / patch) * (image / patch); }
  int VisionTokens() const { return 1 + Patches(); }
};

enum class DitObjective { kDiffusion, kFlowMatching };

struct DitConfig : PolicyConfig {
  DitObjective objective = DitObjective::kDiffusion;
  SchedulerConfig scheduler;                      // diffusion
  SamplerKind integration = SamplerKind::kEuler;  // flow matching: integration_method
  int integration_steps = 100;                    // num_integration_steps
  int hidden = 512, layers = 6, heads = 8;        // hidden_dim, num_layers, num_heads
  int time_embed = 256;                           // timestep_embed_dim
  bool rope = true;                               // use_rope; else nn.MultiheadAttention's names
  double rope_base = 10000;
  bool position_embedding = false;          // use_positional_encoding
  bool separate_encoders = false;           // use_separate_rgb_encoder_per_camera
  int resize_height = 0, resize_width = 0;  // image_resize_shape; 0: none
  int crop_height = 0, crop_width = 0;      // image_crop_shape; 0: none, or it does not fit
  std::string vision_name, text_name;       // vision_encoder_name, text_encoder_name
  int text_tokens = 77;                     // tokenizer_max_length
  ClipConfig clip;                          // from the tensors' shapes and from CLIP's own file
  // Of dit_compact: this project's encoder of pictures in place of both towers, and no text.
  std::optional<EncoderConfig> encoder;

  // Features of one picture, and of the text.
  int FeatureDim() const { return encoder ? encoder->feature_dim : clip.vision.width; }
  int TextDim() const { return encoder ? 0 : hidden; }
  // Features of one observation step: state, all cameras, text.
  int StepDim() const {
    return state_dim + static_cast<int>(cameras.size()) * FeatureDim() + TextDim();
  }
  int CondDim() const { return n_obs_steps * StepDim(); }
  // Picture size after resize and crop.
  int PictureHeight() const;
  int PictureWidth() const;
};

// The type of a config.json that has this project's encoder.
inline constexpr char kCompactDit[] = "dit_compact";

// Parses what is not of every policy; `features` holds the rest, and `origin` names the file.
// Throws Error that names the key.
DitConfig ParseDitConfig(KeyReader& keys, const std::string& origin, const PolicyConfig& features);

// Adds the members that ParseDitConfig reads, as LeRobot writes them.
void AddDitConfig(const DitConfig& config, Json& json);

}  // namespace mjp

#endif  // POLICY_DIT_DIT_CONFIG_H_

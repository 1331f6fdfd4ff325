#ifndef POLICY_CHECKPOINT_CONFIG_H_
#define POLICY_CHECKPOINT_CONFIG_H_

#include <optional>
#include <string>
#include <vector>

// What a checkpoint's config.json says, parsed once and checked. Field names follow LeRobot's,
// whose files these are.

namespace mjp {

enum class Normalization { kIdentity, kMeanStd, kMinMax, kQuantiles, kQuantile10 };
enum class BetaSchedule { kSquaredCosCapV2, kLinear };
enum class PredictionType { kEpsilon, kSample, kVPrediction };
enum class VarianceType { kFixedSmall, kFixedLarge };
// Chains of a diffusion; integrators of a flow; the one pass of a distilled student; kAuto: the
// checkpoint's own, never within one.
enum class SamplerKind { kDdpm, kDdim, kEuler, kRk4, kOneStep, kAuto };

// One camera picture of an observation.
struct CameraFeature {
  std::string name;                         // e.g. "observation.image"
  int channels = 3, height = 0, width = 0;  // as in the config: the picture that comes in
};

enum class EncoderKind {
  kNone,      // no camera
  kResNet18,  // LeRobot's and the notebook's
  kCompact,   // this project's: docs/CHECKPOINTS.md
};
enum class PoolKind {
  kSpatialSoftmax,  // 1x1 conv to keypoints, expectation over the grid, Linear, ReLU
  kAverage,         // global average (the notebook's)
  kFlatten,         // 1x1 conv, ReLU, flatten, Linear (compact)
  kNone,            // the last feature map is the result (a backbone)
};

// A picture encoder. Layers in order: stem conv, norm, ReLU, [max-pool], stages of basic blocks
// (the first block of a stage has that stage's stride), pool.
struct EncoderConfig {
  EncoderKind kind = EncoderKind::kNone;
  PoolKind pool = PoolKind::kSpatialSoftmax;
  int resize_height = 0, resize_width = 0;  // 0: none; bilinear, before the crop
  int crop_height = 0, crop_width = 0;      // 0: none; else the center crop
  int stem_channels = 64, stem_kernel = 7, stem_stride = 2;
  bool stem_max_pool = true;
  std::vector<int> stage_channels = {64, 128, 256, 512};
  std::vector<int> stage_strides = {1, 2, 2, 2};
  int blocks_per_stage = 2;
  bool group_norm = true;  // false: BatchNorm, folded into the convolutions at load
  int channels_per_group = 16;
  int stem_groups = 4;  // groups of the stem's norm
  int pool_channels =
      32;                // keypoints of the spatial softmax, or channels of the 1x1 before flatten
  int feature_dim = 64;  // what one picture becomes
  bool feature_relu = true;  // ReLU after the last Linear
  bool separate_per_camera = false;
};

// This project's own encoder at its default size: 2 M parameters, 6x6 map of a 96x96 picture.
inline EncoderConfig CompactEncoderConfig() {
  EncoderConfig encoder;
  encoder.kind = EncoderKind::kCompact;
  encoder.pool = PoolKind::kFlatten;
  encoder.stem_channels = 32;
  encoder.stem_kernel = 5;
  encoder.stem_max_pool = false;
  encoder.stage_channels = {64, 128, 192};
  encoder.stage_strides = {2, 2, 2};
  encoder.feature_relu = false;
  return encoder;
}

struct UnetConfig {
  std::vector<int> down_dims = {512, 1024, 2048};
  int kernel_size = 5;
  int groups = 8;  // the final block always has 8, whatever this says
  int step_embed_dim = 128;
  bool film_scale = true;  // scale and bias; false: bias only
};

struct SchedulerConfig {
  SamplerKind kind = SamplerKind::kDdpm;
  int train_steps = 100;
  BetaSchedule beta_schedule = BetaSchedule::kSquaredCosCapV2;
  float beta_start = 1e-4f, beta_end = 0.02f;
  PredictionType prediction = PredictionType::kEpsilon;
  VarianceType variance = VarianceType::kFixedSmall;
  bool clip_sample = true;
  float clip_range = 1.0f;
  int inference_steps = 100;  // what the checkpoint asks for; PolicyOptions may override it
  // Deviation of a chain's noise, at its start and on its way; PolicyOptions may override it. Less
  // than 1 is the low-temperature sampling of Diffuser (Janner et al. 2022) and Decision Diffuser
  // (Ajay et al. 2023): chunks nearer to the likeliest one.
  float temperature = 1.0f;
};

// Order of the parts of one observation step within the global conditioning vector.
enum class CondOrder {
  kStateImageEnvironment,  // LeRobot and this project
  kImageState,             // the notebook
};

// What every policy has, whatever its network.
struct PolicyConfig {
  std::string type;        // "diffusion" (LeRobot), "diffusion_compact" (this project), ...
  int n_obs_steps = 2;     // To
  int horizon = 16;        // H: actions in a chunk
  int n_action_steps = 8;  // Ta: actions n_obs_steps-1 ... n_obs_steps-1+Ta-1 are executed
  // What the checkpoint asks of whoever can decide before these are executed: a decision every so
  // many control steps (0: Ta), whose chunk is taken where it departs by more than `replan_beyond`
  // (policy/prefix/event_replanning.h; 0: always).
  int replan_every = 0;
  double replan_beyond = 0;
  std::vector<CameraFeature> cameras;  // in the order in which config.json writes them
  int state_dim = 0;                   // "observation.state"; 0: none
  int environment_dim = 0;             // "observation.environment_state"; 0: none
  int action_dim = 0;
  // Temporal ensembling (policy/act/temporal_ensemble.h) with this coefficient: every control step
  // makes a chunk, and executes the mean of what all chunks say of it.
  std::optional<double> temporal_ensemble;
  // Trained on chunks whose beginning is known: what PolicyInput::prefix holds is seen without
  // noise at every step of the chain.
  bool trained_prefix = false;

  int FirstAction() const { return n_obs_steps - 1; }
  // Control steps from decision to decision, of who can choose.
  int DecisionSteps() const { return replan_every > 0 ? replan_every : n_action_steps; }
  // Whether `replan_beyond` would never count: no decision comes before a chunk has ended.
  bool DecidesTooRarely() const { return replan_beyond > 0 && DecisionSteps() >= n_action_steps; }
};

// A policy whose network is a picture encoder and a 1-D U-Net that denoises.
struct UnetPolicyConfig : PolicyConfig {
  CondOrder cond_order = CondOrder::kStateImageEnvironment;
  EncoderConfig encoder;
  UnetConfig unet;
  SchedulerConfig scheduler;

  // Features of one observation step: state, all cameras, environment.
  int StepDim() const {
    return state_dim + environment_dim + encoder.feature_dim * static_cast<int>(cameras.size());
  }
  int CondDim() const { return n_obs_steps * StepDim(); }  // global conditioning vector
};

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_CONFIG_H_

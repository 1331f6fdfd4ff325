#include "policy/act/act_policy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/float_environment.h"
#include "policy/act/folded_backbone.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/cpu/decision.h"
#include "policy/cpu/shared_networks.h"
#include "policy/input_check.h"

namespace mjp::cpu {
namespace {

constexpr int kRowsAtOnce = 512;         // tokens of a pass: more would not be faster
constexpr int kPixelsAtOnce = 8 * 9216;  // of an encoder's pass: its maps stay in cache

// Frames of an encoder's pass, and environments of the transformer's.
int FramesAtOnce(const ActPolicyConfig& config, int batch) {
  const CameraFeature& camera = config.cameras.front();
  return std::clamp(kPixelsAtOnce / (camera.height * camera.width), 1, batch);
}

int EnvironmentsAtOnce(const ActPolicyConfig& config, int batch) {
  return std::clamp(kRowsAtOnce / std::max(config.Tokens(), config.horizon), 1, batch);
}

}  // namespace

ActPolicy::ActPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
    : Policy(std::move(checkpoint), options),
      config_(ActOf(*checkpoint_).config),
      pool_(options.threads) {
  ResolveCpuOptions(config_, options_);
  options_.sampler = options.sampler;  // it has none
  weights_ = SharedNetworks<PackedAct>(checkpoint_,
                                       [](const Checkpoint& from) { return PackAct(ActOf(from)); });
  at_once_ = EnvironmentsAtOnce(config_, options.batch);
  for (size_t i = 0; i < config_.cameras.size(); ++i) {
    encoders_.emplace_back(weights_->backbone, ActBackbone(), config_.cameras[i],
                           checkpoint_->stats.cameras[i], FramesAtOnce(config_, at_once_), pool_);
  }
  transformer_ = std::make_unique<ActTransformer>(weights_, config_, at_once_, pool_);
  if (options.scene_drawer != nullptr && config_.cameras.size() == 1)
    frames_.resize(options.batch * options.scene_drawer->picture_bytes());
  numbers_.resize(size_t{1} * at_once_ * std::max(config_.state_dim, config_.environment_dim));
  actions_ = AlignedBuffer(size_t{1} * options.batch * config_.horizon * config_.action_dim);
}

std::string ActPolicy::Description() const { return CpuDescription(options_); }

void ActPolicy::AddVector(const Vector& vector, int first, int count, ActTrace* trace) {
  const ConvLayer& layer = *vector.layer;
  const int dim = layer.in;
  for (int i = 0; i < count * dim; ++i)
    numbers_[i] = Normalize(*vector.stats, i % dim, vector.values[first * dim + i]);
  if (trace != nullptr)
    trace->KeepVector(std::string("norm/") + vector.feature, numbers_.data(), first, count, dim);
  const int64_t pitch = int64_t{config_.Tokens()} * config_.width;
  LinearTokens(pool_, layer, numbers_.data(), dim, count, TokenActivation::kNone,
               transformer_->tokens() + vector.token * config_.width, pitch);
}

void ActPolicy::AddPictures(const uint8_t* frames, size_t camera, int token, int first, int count,
                            ActTrace* trace) {
  const CameraFeature& feature = config_.cameras[camera];
  const int64_t picture = int64_t{feature.height} * feature.width * 3;
  const int64_t stride = picture * static_cast<int64_t>(config_.cameras.size());
  const uint8_t* rgb = frames + first * stride + static_cast<int64_t>(camera) * picture;
  Encoder& encoder = encoders_[camera];
  const Features& map = encoder.feature_map();
  for (int done = 0; done < count; done += encoder.capacity()) {
    const int part = std::min(encoder.capacity(), count - done);
    const double begin = Now();
    encoder.Prepare(rgb + done * stride, stride, part);
    const double prepared = Now();
    encoder.Encode(part, nullptr);
    for (int i = 0; i < part; ++i) {
      Features x = map, y;
      x.data = map.At(i, 0, 0);
      x.batch = 1;
      y = {.data = transformer_->tokens() +
                   (int64_t{done + i} * config_.Tokens() + token) * config_.width,
           .batch = 1,
           .height = map.height,
           .width = map.width,
           .channels = config_.width,
           .pitch = config_.width};
      pool_.ForBlocks(1, config_.width, PanelChannels(),
                      [&](const Block& b) { Convolve(*weights_->image, x, y, b); });
      if (trace != nullptr)
        trace->KeepMap("layer4/" + std::to_string(camera), map, i, first + done + i);
    }
    prepare_ += prepared - begin;
    encode_ += Now() - prepared;
  }
}

void ActPolicy::FillTokens(const PolicyInput& input, const uint8_t* frames, int first, int count,
                           ActTrace* trace) {
  const int tokens = config_.Tokens(), width = config_.width;
  for (int n = 0; n < count; ++n) {
    std::copy_n(weights_->latent.data(), width,
                transformer_->tokens() + int64_t{n} * tokens * width);
  }
  int token = 1;
  if (weights_->state) {
    AddVector({&*weights_->state, &checkpoint_->stats.state, kStateFeature, input.state, token++},
              first, count, trace);
  }
  if (weights_->environment) {
    AddVector({&*weights_->environment, &checkpoint_->stats.environment, kEnvironmentFeature,
               input.environment, token++},
              first, count, trace);
  }
  for (size_t camera = 0; camera < encoders_.size(); ++camera) {
    AddPictures(frames, camera, token, first, count, trace);
    const Features& map = encoders_[camera].feature_map();
    token += map.height * map.width;
  }
}

void ActPolicy::Infer(const PolicyInput& input, PolicyOutput& output) {
  const DefaultFloatEnvironment arithmetic;
  CheckInput(*checkpoint_, options_, input);
  StageTimes& times = output.times;
  times = {};
  prepare_ = encode_ = 0;
  std::optional<ActTrace> trace;
  if (output.trace != nullptr) {
    *output.trace = {};
    trace.emplace(*output.trace, input.count);
  }
  const uint8_t* frames = input.frames.data();
  if (!input.scenes.empty()) {
    Timed(times, Stage::kRender,
          [&] { DrawScenes(pool_, *options_.scene_drawer, input, frames_); });
    frames = frames_.data();
  }
  const int chunk = config_.horizon, actions = config_.action_dim;
  const double begin = Now();
  for (int first = 0; first < input.count; first += at_once_) {
    const int count = std::min(at_once_, input.count - first);
    FillTokens(input, frames, first, count, trace ? &*trace : nullptr);
    ActTap tap;
    if (trace) {
      tap = [&](const std::string& name, const float* values, int rows, int width) {
        trace->Keep(name, values, first, count, rows, width);
      };
    }
    transformer_->Run(count, actions_.data() + int64_t{first} * chunk * actions, tap);
  }
  // pictures and transformer take turns: the stages are told apart by their sums
  const double pictures = begin + prepare_;
  if (!encoders_.empty()) {
    times[Stage::kPrepare] = {begin, pictures};
    times[Stage::kEncode] = {pictures, pictures + encode_};
  }
  times[Stage::kDenoise] = {pictures + encode_, Now()};
  times.passes = 1;
  if (trace) {
    trace->Finish(weights_->positions, config_.Tokens(), config_.width, actions_.data(), chunk,
                  actions);
  }
  Timed(times, Stage::kFetch,
        [&] { FetchActions(*checkpoint_, actions_.data(), input.count, output); });
}

std::unique_ptr<Policy> MakeActPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                      const PolicyOptions& options) {
  return std::make_unique<ActPolicy>(std::move(checkpoint), options);
}

}  // namespace mjp::cpu

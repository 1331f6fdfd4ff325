#include "policy/dit/dit_policy.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/cpu/decision.h"
#include "policy/cpu/shared_networks.h"
#include "policy/flow_sampler.h"
#include "policy/scheduler.h"

namespace mjp::cpu {
namespace {

constexpr int kFramesAtOnce = 4;    // pictures of a tower's pass
constexpr size_t kMostTexts = 256;  // features kept; an episode has one or a few

std::shared_ptr<PackedDit> Pack(const Checkpoint& checkpoint) {
  const DitModel& model = DitOf(checkpoint);
  auto networks = std::make_shared<PackedDit>();
  for (const ClipVisionWeights& vision : model.weights.vision) {
    networks->vision.push_back(PackVision(vision));
  }
  networks->text = PackText(model.weights.text);
  networks->text_projection = PackLinear(model.weights.text_projection);
  networks->trunk = PackTrunk(model.config, model.weights);
  return networks;
}

}  // namespace

DitPolicy::DitPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
    : DenoisingPolicy(std::move(checkpoint), options), model_(DitOf(*checkpoint_)) {
  const DitConfig& config = model_.config;
  networks_ = SharedNetworks<PackedDit>(checkpoint_, Pack);
  const SamplerOptions& sampler = options_.sampler;
  const int elements = config.horizon * config.action_dim;
  if (config.objective == DitObjective::kFlowMatching) {
    pass_times_ = FlowTimes(sampler.kind, sampler.steps);
    sampler_ = MakeFlowSampler(sampler.kind, sampler.steps, options.batch, elements);
  } else {
    schedule_ = MakeSchedule(config.scheduler, sampler.kind, sampler.steps);
    for (const DenoiseStep& step : schedule_) pass_times_.push_back(step.timestep);
    sampler_ = MakeChainSampler(schedule_, elements, options_);
  }
  trunk_ = std::make_unique<Trunk>(networks_->trunk, config, pass_times_, sampler_->MaxRows(),
                                   options.batch, pool_);
  const int frames = options.batch * config.n_obs_steps;
  const int at_once = std::min(frames, kFramesAtOnce);
  for (size_t i = 0; i < config.cameras.size(); ++i) {
    pictures_.emplace_back(config.cameras[i], checkpoint_->stats.cameras[i],
                           PictureSteps{config.resize_height, config.resize_width,
                                        config.crop_height, config.crop_width},
                           at_once, 0, pool_);
  }
  for (const PackedVision& vision : networks_->vision) {
    towers_.emplace_back(vision, config.clip, at_once, pool_);
  }
  TakeBuffers(config.clip.vision.width, config.CondDim());
  // what is wrong with it is said now, and the first decision does not wait for it
  if (!options.instruction.empty()) TextFeature(TextIds({}, 0));
}

void DitPolicy::Forward(const float* x, const int* step, const int* environment, int rows,
                        float* output) {
  trunk_->Forward(x, step, environment, rows, output);
}

void DitPolicy::Condition(std::span<const float> cond, int count) {
  trunk_->Condition(cond, count);
}

int DitPolicy::FramesAtOnce(size_t camera) const { return pictures_[camera].capacity(); }

void DitPolicy::PrepareFrames(size_t camera, const uint8_t* frames, int64_t stride, int count) {
  pictures_[camera].Prepare(frames, stride, count);
}

void DitPolicy::EncodePrepared(size_t camera, int count, float* features) {
  towers_[model_.config.separate_encoders ? camera : 0].Encode(pictures_[camera].view(), count,
                                                               features);
}

std::vector<int> DitPolicy::TextIds(const PolicyInput& input, int n) const {
  if (!input.instruction_ids.empty()) {
    const std::vector<int>& ids = input.instruction_ids[n];
    const int words = model_.config.clip.vocabulary;
    for (const int id : ids) {
      if (id >= 0 && id < words) continue;
      throw BadInput("policy input: token " + std::to_string(id) + " of an instruction; the text " +
                     "encoder knows 0 to " + std::to_string(words - 1));
    }
    return ids;
  }
  const std::string& text =
      input.instructions.empty() ? options_.instruction : input.instructions[n];
  if (model_.tokenizer == nullptr) throw BadInput(model_.tokenizer_lack);
  try {
    return model_.tokenizer->Encode(text, model_.text_tokens());
  } catch (const Error& error) {
    throw Error(error.code(), "instruction \"" + text + "\": " + error.what());
  }
}

const std::vector<float>& DitPolicy::TextFeature(const std::vector<int>& ids) {
  const auto found = texts_.find(ids);
  if (found != texts_.end()) return found->second;
  const DitConfig& config = model_.config;
  std::vector<float> pooled(config.clip.text.width), feature(config.hidden);
  EncodeText(networks_->text, config.clip, ids, pooled.data(), pool_);
  LinearTokens(pool_, networks_->text_projection, pooled.data(), config.clip.text.width, 1,
               TokenActivation::kNone, feature.data(), config.hidden);
  if (texts_.size() >= kMostTexts) texts_.clear();
  return texts_[ids] = std::move(feature);
}

void DitPolicy::AssembleCondition(const PolicyInput& input) {
  const DitConfig& config = model_.config;
  const int steps = config.n_obs_steps, count = input.count * steps;
  const int width = config.clip.vision.width, states = config.state_dim;
  float* out = cond_.data();
  for (int n = 0; n < input.count; ++n) {
    const std::vector<float>& text = TextFeature(TextIds(input, n));
    for (int f = n * steps; f < (n + 1) * steps; ++f) {
      for (int i = 0; i < states; ++i) {
        *out++ = Normalize(checkpoint_->stats.state, i, input.state[f * states + i]);
      }
      for (size_t camera = 0; camera < pictures_.size(); ++camera) {
        out = std::copy_n(features_.data() + (camera * count + f) * width, width, out);
      }
      out = std::copy(text.begin(), text.end(), out);
    }
  }
}

void DitPolicy::CompleteTrace(int count, PolicyTrace& trace) const {
  const DitConfig& config = model_.config;
  const int64_t n = count, horizon = config.horizon, actions = config.action_dim;
  const int64_t elements = n * horizon * actions;
  const auto passes = static_cast<int64_t>(trace.eps_steps.size()) / elements;
  trace.tensors["cond"] = {{n, config.CondDim()}, trace.global_cond};
  trace.tensors["pass_out"] = {{passes, n, horizon, actions}, trace.eps_steps};
  trace.tensors["sample"] = {{n, horizon, actions}, {x_.data(), x_.data() + elements}};
  Tensor& times = trace.tensors["t"];
  times.shape = {passes};
  const bool runge_kutta = options_.sampler.kind == SamplerKind::kRk4;
  for (size_t i = 0; i < pass_times_.size(); ++i) {
    times.data.push_back(static_cast<float>(pass_times_[i]));
    // the middle of a step is evaluated twice
    if (runge_kutta && i % 3 == 1) times.data.push_back(times.data.back());
  }
}

std::unique_ptr<Policy> MakeDitPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                      const PolicyOptions& options) {
  return std::make_unique<DitPolicy>(std::move(checkpoint), options);
}

}  // namespace mjp::cpu

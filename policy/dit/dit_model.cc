#include "policy/dit/dit_model.h"

#include <algorithm>

#include "base/error.h"
#include "policy/checkpoint/checkpoint_files.h"
#include "policy/dit/clip_files.h"
#include "policy/unet/unet_model.h"

namespace mjp {
namespace {

constexpr int kMostFlowSteps = 1000;

std::string SizeText(int height, int width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

std::string TowerText(const ClipTower& tower) {
  return std::to_string(tower.layers) + " layers of " + std::to_string(tower.width) + ", " +
         std::to_string(tower.heads) + " heads";
}

// The pictures that reach the towers must have the size that their positions are for.
void CheckPictures(const DitConfig& config) {
  if (config.cameras.empty()) return;
  const int image = config.clip.image;
  if (config.PictureHeight() == image && config.PictureWidth() == image) return;
  throw BadInput(
      "config.json: the pictures are " + SizeText(config.PictureHeight(), config.PictureWidth()) +
      " after image_resize_shape and image_crop_shape, and the vision encoder looks at " +
      SizeText(image, image) + "; set image_resize_shape to [" + std::to_string(image) + ", " +
      std::to_string(image) + "] if the policy was trained so");
}

}  // namespace

void DitModel::ReadFiles(CheckpointFiles& files) {
  looks = ReadLooks(files.PathOf(kLookFile), config.cameras);
  if (config.encoder) return;
  ReadClipConfig(files, config);
  tokenizer = ReadTokenizer(files, config, tokenizer_lack);
}

DitConfig DitModel::SizedConfig(const TensorSource& source) const {
  DitConfig sized = config;
  if (config.encoder) return sized;
  sized.clip = ClipSizes(source, DitNamesIn(source, config), config);
  CheckPictures(sized);
  if (tokenizer != nullptr && tokenizer->size() > sized.clip.vocabulary) {
    throw BadInput("vocab.json has " + std::to_string(tokenizer->size()) +
                   " entries, and the text encoder knows " + std::to_string(sized.clip.vocabulary) +
                   ": the tokenizer is of another model");
  }
  return sized;
}

void DitModel::ListTensors(const TensorSource& source, const VisitShape& visit) const {
  ListDit(DitNamesIn(source, config), SizedConfig(source), visit);
}

int64_t DitModel::TakeTensors(TensorSource& source) {
  const DitNames names = DitNamesIn(source, config);
  config = SizedConfig(source);
  weights = OutlineDit(config);
  return TakeDit(names, config, source, weights);
}

void DitModel::VisitTensors(const VisitTensor& visit) const {
  VisitDit({}, config, weights, visit);
}

void DitModel::AddConfig(Json& json) const { AddDitConfig(config, json); }

std::vector<std::pair<std::string, std::string>> DitModel::Describe() const {
  const DitConfig& c = config;
  std::vector<std::pair<std::string, std::string>> rows;
  if (c.encoder) {
    rows.emplace_back("vision", EncoderText(*c.encoder));
  } else if (!c.cameras.empty()) {
    rows.emplace_back("vision", c.vision_name + ", " + TowerText(c.clip.vision) + ", patches of " +
                                    std::to_string(c.clip.patch) + " in " +
                                    SizeText(c.clip.image, c.clip.image) +
                                    (c.separate_encoders ? ", one for each camera" : ""));
  }
  if (!c.encoder)
    rows.emplace_back("text", c.text_name + ", " + TowerText(c.clip.text) +
                                  (tokenizer == nullptr ? "; no tokenizer" : ""));
  rows.emplace_back("transformer", std::to_string(c.layers) + " blocks of " +
                                       std::to_string(c.hidden) + ", " + std::to_string(c.heads) +
                                       " heads" + (c.rope ? ", RoPE" : "") +
                                       (c.position_embedding ? ", position embedding" : ""));
  const SamplerTraits traits = sampler();
  rows.emplace_back(
      "sampler", c.objective == DitObjective::kFlowMatching
                     ? std::string("flow matching, ") + std::to_string(traits.steps) +
                           " steps of " +
                           (traits.kind == SamplerKind::kEuler ? "Euler" : "Runge-Kutta of order 4")
                     : std::string(traits.kind == SamplerKind::kDdpm ? "DDPM" : "DDIM") + ", " +
                           std::to_string(traits.steps) + " of " +
                           std::to_string(traits.most_steps) + " steps");
  return rows;
}

SamplerTraits DitModel::sampler() const {
  if (config.objective == DitObjective::kFlowMatching) {
    return {.kinds = {SamplerKind::kEuler, SamplerKind::kRk4},
            .kind = config.integration,
            .steps = config.integration_steps,
            .most_steps = kMostFlowSteps,
            .temperature = config.scheduler.temperature,
            .parallel = true};
  }
  const SchedulerConfig& scheduler = config.scheduler;
  return {.kinds = {SamplerKind::kDdpm, SamplerKind::kDdim},
          .kind = scheduler.kind,
          .steps = scheduler.inference_steps,
          .most_steps = scheduler.train_steps,
          .temperature = scheduler.temperature,
          .noise_steps = scheduler.train_steps,
          .parallel = true};
}

int DitModel::text_tokens() const {
  return config.encoder ? 0 : std::min(config.text_tokens, config.clip.positions);
}

std::unique_ptr<NetworkModel> ParseDitModel(KeyReader& keys, const std::string& origin,
                                            PolicyConfig& policy) {
  auto model = std::make_unique<DitModel>();
  model->config = ParseDitConfig(keys, origin, policy);
  policy = model->config;
  return model;
}

const DitModel& DitOf(const Checkpoint& checkpoint) {
  const auto* model = dynamic_cast<const DitModel*>(checkpoint.network.get());
  if (model != nullptr) return *model;
  throw Unsupported(checkpoint.directory + ": is of type " + checkpoint.config.type +
                    ", whose network is no diffusion transformer");
}

}  // namespace mjp

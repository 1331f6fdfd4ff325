#include "tasks/pusht/evaluation/hosted.h"

#include <cstdio>

#include "base/error.h"
#include "base/text_stream.h"
#include "plugin/register.h"
#include "plugin/state.h"
#include "tasks/evaluation/hosted_failure.h"
#include "tasks/evaluation/plugin_attributes.h"
#include "tasks/pusht/episode_video.h"
#include "tasks/pusht/physics/reset.h"

namespace mjp::app {
namespace {

// Push-T with a policy instance whose attributes are this evaluation's options.
std::string ModelText(RendererKind renderer, const EvaluationOptions& options,
                      const mjp::PolicyConfig& config) {
  mjp::TextWriter xml;
  xml.precision(17);
  const auto attribute = [&xml](const char* key, const auto& value) {
    mjp::TextWriter text;
    text.precision(9);
    text << value;
    xml << "<config key=\"" << key << "\" value=\"" << XmlText(text.str()) << "\"/>";
  };
  xml << "<mujoco><include file=\"" << XmlText(ModelPath("pusht.xml")) << "\"/><extension><plugin "
      << "plugin=\"" << mjp::kPluginName << "\"><instance name=\"policy\">";
  const double period = kSubsteps * kTimestep;
  for (const auto& [key, value] : PluginAttributes(options, config, period)) {
    attribute(key.c_str(), value);
  }
  if (!config.cameras.empty()) attribute("camera", "top");
  if (config.state_dim > 0) attribute("state", "ax ay");
  attribute("state_scale", kPixelsPerUnit);
  attribute("actuators", "ax ay");
  attribute("action_scale", kPixelsPerUnit);
  attribute("period", period);
  attribute("renderer", renderer == RendererKind::kRaster ? "raster" : "mujoco");
  xml << "</instance></plugin></extension></mujoco>";
  return xml.str();
}

ModelPtr LoadModelText(const std::string& text) {
  char reason[2000] = "";
  mjSpec* spec = mj_parseXMLString(text.c_str(), nullptr, reason, sizeof(reason));
  mjModel* model = spec != nullptr ? mj_compile(spec, nullptr) : nullptr;
  if (spec != nullptr && model == nullptr) {
    std::snprintf(reason, sizeof(reason), "%s", mjs_getError(spec));
  }
  mj_deleteSpec(spec);
  if (model == nullptr) throw mjp::BadInput(std::string("the plugin refused the model: ") + reason);
  model->opt.disableflags |= mjDSBL_AUTORESET;
  return ModelPtr(model);
}

// The model as the plugin runs it.
ModelPtr MakeModel(RendererKind renderer, const EvaluationOptions& options,
                   const mjp::PolicyConfig& config) {
  if (!mjp::RegisterPlugin()) throw mjp::EnvironmentError("the engine refused the plugin");
  return LoadModelText(ModelText(renderer, options, config));
}

}  // namespace

PushtHosted::PushtHosted(const PushtOptions& options, const EvaluationOptions& evaluation,
                         const mjp::PolicyConfig& config)
    : options_(options),
      model_(MakeModel(options.renderer, evaluation, config)),
      scene_(model_.get()),
      seen_(SeenThrough(options.renderer, evaluation.conditions, config)),
      data_(MakeData(model_.get())) {}

void PushtHosted::Start(int, uint32_t seed) {
  scene_.SetStart(BenchmarkStart(seed), data_.get());
  mjp::SetEpisodeSeed(model_.get(), data_.get(), seed);
  numbers_ = ToNumbers(scene_.Read(data_.get()));
}

void PushtHosted::Step() {
  for (int i = 0; i < kSubsteps; ++i) mj_step(model_.get(), data_.get());
  numbers_ = ToNumbers(scene_.Read(data_.get()));
}

int PushtHosted::Decisions() const {
  return static_cast<int>(mjp::PolicyDecisions(model_.get(), data_.get()));
}

void PushtHosted::Judge(int, StepOutcome& outcome) const {
  JudgeStep(options_, FromNumbers(numbers_), HostedFailure(model_.get(), data_.get()), outcome);
}

std::unique_ptr<EpisodeVideo> PushtHosted::MakeVideo(int, const std::string& folder,
                                                     const EpisodeResult& episode) {
  return std::make_unique<PushtVideo>(folder, episode, seen_,
                                      [this] { return scene_.Read(data_.get()); });
}

}  // namespace mjp::app

#include "tasks/evaluation/plugin_evaluation.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/text_stream.h"
#include "base/threads.h"
#include "plugin/register.h"
#include "plugin/state.h"
#include "policy/option_names.h"
#include "tasks/evaluation/disturbances.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/pictures/raster_source.h"
#include "tasks/recording/episode_video.h"

namespace mjp::app {
namespace {

std::string XmlText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

// Push-T with a policy instance whose attributes are this evaluation's options.
std::string ModelText(const EvaluationOptions& options, const mjp::PolicyConfig& config) {
  mjp::TextWriter xml;
  xml.precision(17);
  const auto attribute = [&xml](const char* key, const auto& value) {
    mjp::TextWriter text;
    text.precision(9);
    text << value;
    xml << "<config key=\"" << key << "\" value=\"" << XmlText(text.str()) << "\"/>";
  };
  const mjp::PolicyOptions& policy = options.policy;
  xml << "<mujoco><include file=\"" << XmlText(ModelPath("pusht.xml")) << "\"/><extension><plugin "
      << "plugin=\"" << mjp::kPluginName << "\"><instance name=\"policy\">";
  attribute("checkpoint", options.checkpoint);
  if (!config.cameras.empty()) attribute("camera", "top");
  if (config.state_dim > 0) attribute("state", "ax ay");
  attribute("state_scale", kPixelsPerUnit);
  attribute("actuators", "ax ay");
  attribute("action_scale", kPixelsPerUnit);
  attribute("period", kSubsteps * kTimestep);
  attribute("latency", options.conditions.latency * kSubsteps * kTimestep * 1e3);
  attribute("action_steps", ResolveActionSteps(options, config));
  if (policy.sampler.kind != mjp::SamplerKind::kAuto) {  // else it has none
    attribute("sampler", mjp::SamplerName(policy.sampler.kind));
    attribute("steps", policy.sampler.steps);
    attribute("hold_noise", policy.sampler.hold_noise);
  }
  if (policy.sampler.parallel_window != mjp::kAutoWindow) {
    mjp::TextWriter text;
    text.precision(9);
    text << policy.sampler.parallel_window << "," << policy.sampler.parallel_tolerance;
    attribute("parallel", text.str());
  }
  if (!policy.instruction.empty()) attribute("instruction", policy.instruction);
  attribute("backend", mjp::BackendName(policy.backend));
  attribute("precision", mjp::PrecisionName(policy.precision));
  attribute("renderer", options.renderer == RendererKind::kRaster ? "raster" : "mujoco");
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

// One thread's simulation.
class PluginWorker {
 public:
  PluginWorker(const EvaluationOptions& options, const mjp::PolicyConfig& config)
      : options_(options),
        model_(LoadModelText(ModelText(options, config))),
        scene_(model_.get()),
        data_(MakeData(model_.get())) {}

  EpisodeResult Run(int index, std::string& video_file) {
    EpisodeResult result;
    StateHash hash;
    const double begin = mjp::Now();
    result.index = index;
    result.seed = options_.seed + static_cast<uint32_t>(index);
    scene_.SetStart(BenchmarkStart(result.seed), data_.get());
    mjp::SetEpisodeSeed(model_.get(), data_.get(), result.seed);
    std::unique_ptr<EpisodeVideo> video;
    if (index < options_.videos) {
      video = std::make_unique<EpisodeVideo>(options_.video_folder, result);
      video->Add(scene_.Read(data_.get()), result);
    }
    bool running = true;
    while (running) {
      for (int i = 0; i < kSubsteps; ++i) mj_step(model_.get(), data_.get());
      const State state = scene_.Read(data_.get());
      running = ScoreStep(options_, state, Failure(), result, hash);
      if (video) video->Add(state, result);
    }
    result.decisions = static_cast<int>(mjp::PolicyDecisions(model_.get(), data_.get()));
    result.hash = hash.value();
    result.seconds = mjp::Now() - begin;
    if (video) video_file = video->Close();
    return result;
  }

 private:
  std::string Failure() const {
    if (mjp::PolicyFailed(model_.get(), data_.get())) return "the policy failed";
    for (const int kind : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC}) {
      if (data_->warning[kind].number > 0) return "the physics diverged";
    }
    return "";
  }

  const EvaluationOptions& options_;
  ModelPtr model_;
  Scene scene_;
  DataPtr data_;
};

}  // namespace

EvaluationResult EvaluateThroughPlugin(const EvaluationOptions& options,
                                       std::unique_ptr<mjp::Policy> policy,
                                       const std::vector<int>& pending,
                                       const EpisodeCallback& on_episode,
                                       const std::atomic<bool>& stop) {
  const Conditions& c = options.conditions;
  if (options.physics != PhysicsKind::kMujoco || DisturbsPictures(c) || c.action_noise != 0 ||
      c.push != 0) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--through plugin runs the scene as it is: another physics, disturbed "
                     "pictures, targets and pushes need --through batch");
  }
  RegisterRasterSource();
  if (!mjp::RegisterPlugin()) throw mjp::EnvironmentError("the engine refused the plugin");
  EvaluationResult result;
  result.backend = policy->Description();
  const mjp::PolicyConfig config = policy->config();
  EvaluationOptions resolved = options;
  resolved.policy.sampler = policy->options().sampler;
  policy.reset();
  const double begin = mjp::Now();
  std::mutex mutex;
  std::atomic<size_t> next{0};
  const int threads = std::min<int>(options.policy.threads, pending.size());
  RunOnThreads(threads, [&](const std::atomic<bool>& failed) {
    PluginWorker worker(resolved, config);
    for (size_t i = next++; i < pending.size() && !stop && !failed; i = next++) {
      std::string video;
      const EpisodeResult episode = worker.Run(pending[i], video);
      const std::lock_guard<std::mutex> lock(mutex);
      if (!video.empty()) result.videos.push_back(video);
      on_episode(episode);
      result.episodes.push_back(episode);
    }
  });
  result.interrupted = stop;
  result.seconds = mjp::Now() - begin;
  std::sort(result.episodes.begin(), result.episodes.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  std::sort(result.videos.begin(), result.videos.end());
  return result;
}

}  // namespace mjp::app

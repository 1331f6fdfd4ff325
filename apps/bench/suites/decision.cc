#include <cstdio>
#include <optional>

#include "apps/bench/harness.h"
#include "apps/bench/observations.h"
#include "apps/bench/picture_history.h"
#include "apps/bench/stage_milliseconds.h"
#include "plugin/pictures/mujoco_renderer.h"

// A decision from pictures to actions as the caller waits for it, and its stages. With MuJoCo's
// renderer the newest picture is drawn within it; those before were drawn in earlier control steps.

namespace mjp::app {
namespace {

// What the decisions took, milliseconds.
struct DecisionTimes {
  std::vector<double> whole, picture, pass;
  StageMilliseconds stages;
  int passes = 0;

  void Add(const mjp::StageTimes& times) {
    stages.Add(times);
    const auto& denoise = times[mjp::Stage::kDenoise];
    if (times.passes > 0) pass.push_back(1e3 * (denoise.end - denoise.begin) / times.passes);
  }
};

// Decides for a while on what the observations show, with pictures where `pictures` draws them.
DecisionTimes Measure(const BenchOptions& options, mjp::Policy& policy,
                      std::optional<BenchPictureHistory>& pictures) {
  BenchObservations observations(*options.network, policy.options().batch);
  mjp::PolicyOutput output;
  DecisionTimes times;
  const auto decide = [&] {
    for (int i = 1; pictures && i < policy.config().n_obs_steps; ++i) pictures->Draw();
    mjp::PolicyInput input = observations.Next();
    const double begin = mjp::Now();
    if (pictures) {
      pictures->Draw();
      times.picture.push_back(1e3 * (mjp::Now() - begin));
      pictures->Show(input);
    }
    policy.Infer(input, output);
    times.whole.push_back(1e3 * (mjp::Now() - begin));
    times.Add(output.times);
  };
  decide();  // captures the graph
  times = {};
  Repeat(options, decide);
  times.passes = output.times.passes;
  return times;
}

}  // namespace

// The whole is timed without its stages, as the plugin decides, and on a GPU these by themselves.
BenchRows BenchDecision(const BenchOptions& options) {
  mjp::PolicyOptions policy_options = options.policy;
  policy_options.timing = mjp::TimingDetail::kNone;
  const auto policy = mjp::Policy::Create(options.network, policy_options);
  const bool gpu = policy->options().backend == mjp::Backend::kCuda;
  std::optional<BenchPictureHistory> pictures;
  if (options.renderer == RendererKind::kMujoco)
    pictures.emplace(policy->config(), options.policy.batch, policy->device_ordinal());
  DecisionTimes times = Measure(options, *policy, pictures);
  BenchRows rows;
  rows.push_back(FromTimes("decision", "decision", times.whole));
  rows.back().items = policy->options().batch;
  rows.back().unit = "decisions";
  char tail[64];
  std::snprintf(tail, sizeof(tail), ", p99 / median %.3f", rows.back().p99 / rows.back().median);
  rows.back().note = policy->Description() + tail;
  if (pictures) {
    rows.push_back(FromTimes("decision", "its picture by MuJoCo's renderer", times.picture));
    rows.back().note = mjp::MujocoRendererDescription() +
                       (pictures->on_gpu() ? ", left on the GPU" : ", by way of the host");
  }
  policy_options.timing = mjp::TimingDetail::kStages;
  if (gpu)
    times = Measure(options, *mjp::Policy::Create(options.network, policy_options), pictures);
  const std::string device = gpu ? "GPU" : "CPU";
  times.stages.AddRows("decision", "", device, rows);
  if (!times.pass.empty()) {
    rows.push_back(FromTimes("decision", "pass with its denoising", times.pass));
    rows.back().device = device;
    rows.back().note = std::to_string(times.passes) + " passes per decision";
  }
  return rows;
}

}  // namespace mjp::app

#include <cstdio>
#include <memory>
#include <optional>

#include "apps/bench/device.h"
#include "apps/commands.h"
#include "apps/policy_options.h"
#include "apps/profile/closed_loop.h"
#include "apps/profile/kernel_tracer.h"
#include "apps/stop_signal.h"
#include "apps/tasks/task_option.h"
#include "base/folders.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "tasks/evaluation/version.h"

namespace mjp::app {
namespace {

struct Arguments {
  EvaluationOptions run;
  std::string network = "compact", trace;
  int decisions = 20;
  bool mujoco = false, kernels = false;
};

void Print(const std::vector<SpanSummary>& rows) {
  std::printf("%-16s %-60s %7s %11s %11s %8s\n", "", "stage", "n", "median ms", "p99 ms", "share");
  for (const SpanSummary& row : rows)
    std::printf("%-16s %-60.60s %7d %11.4f %11.4f %6.1f %%\n", TrackName(row.track),
                row.name.c_str(), row.n, row.median, row.p99, 100 * row.share);
}

int Run(Arguments& arguments) {
  const std::atomic<bool>& stop = StopOnSignal();
  EvaluationOptions& run = arguments.run;
  const auto checkpoint = run.checkpoint.empty() ? mjp::NamedNetwork(arguments.network)
                                                 : mjp::LoadCheckpoint(run.checkpoint);
  run.policy.timing = mjp::TimingDetail::kSteps;
  std::optional<KernelTracer> tracer;
  if (arguments.kernels) tracer.emplace();
  const auto policy = mjp::Policy::Create(checkpoint, run.policy);
  Timeline timeline;
  const RendererKind renderer = arguments.mujoco ? RendererKind::kMujoco : RendererKind::kRaster;
  const int done = ProfileClosedLoop(run, renderer, *policy, arguments.decisions, stop, timeline);
  if (done < arguments.decisions)
    std::fprintf(stderr, "\nstopped; %d of %d decisions were recorded\n", done,
                 arguments.decisions);
  if (done == 0) return StoppedExitCode();
  if (tracer) {
    for (const KernelSpan& kernel : tracer->Finish())
      if (kernel.begin >= timeline.Begin())
        timeline.Add(Track::kKernels, kernel.name, kernel.begin, kernel.end);
  }
  const Machine machine = DescribeMachine();
  std::printf("%s\n%s, %u cores\n", VersionText().c_str(), machine.processor.c_str(),
              machine.cores);
  std::printf("%s, batch %d, %d decisions in %.3f s\n\n", policy->Description().c_str(),
              run.policy.batch, done, timeline.Length());
  Print(timeline.Summary());
  const int code = done < arguments.decisions ? StoppedExitCode() : 0;
  if (arguments.trace.empty()) return code;
  const mjp::Json facts = {{"version", VersionText()},
                           {"processor", machine.processor},
                           {"gpu", machine.gpu},
                           {"driver", machine.driver},
                           {"policy", policy->Description()}};
  WriteFileAtomically(arguments.trace, JsonText(timeline.ToTrace(facts)) + "\n");
  std::printf("\ntrace -> %s (open it in ui.perfetto.dev or chrome://tracing)\n",
              arguments.trace.c_str());
  return code;
}

}  // namespace

Action AddProfile(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "profile", "Where the time goes: every stage, denoising step and kernel of a closed loop");
  AddTaskOption(*command);
  command->add_option("--network", arguments->network, "Which network, with random weights")
      ->type_name("")
      ->check(OneOf(mjp::NamedNetworks()))
      ->capture_default_str();
  command->add_option("--checkpoint", arguments->run.checkpoint, "Checkpoint directory instead")
      ->type_name("DIR");
  command->add_option("--batch", arguments->run.policy.batch, "Robots beside each other")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--decisions", arguments->decisions, "To record")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_flag("--mujoco", arguments->mujoco, "Pictures by MuJoCo's renderer");
  command->add_flag("--kernels", arguments->kernels, "Every kernel on the GPU too, through CUPTI");
  command->add_option("--trace", arguments->trace, "Also write the timeline to this file (JSON)")
      ->type_name("FILE");
  AddPolicyOptions(*command, arguments->run.policy);
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>

#include "apps/commands.h"
#include "apps/evaluate/progress.h"
#include "apps/policy_options.h"
#include "apps/stop_signal.h"
#include "apps/tasks/task_choice.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folders.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/prefix/event_replanning.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/evaluation/run_text.h"
#include "tasks/evaluation/version.h"
#include "tasks/results/report.h"
#include "tasks/results/results_folder.h"
#include "tasks/results/shard.h"
#include "tasks/task_names.h"

namespace mjp::app {
namespace {

constexpr uint32_t kLastSeed = std::numeric_limits<uint32_t>::max();

struct Arguments {
  EvaluationOptions evaluation;
  TaskChoice task;
  std::string out, shard;
  bool resume = false, overwrite = false, json = false;
};

ExistingResults Existing(const Arguments& arguments) {
  if (arguments.resume) return ExistingResults::kResume;
  return arguments.overwrite ? ExistingResults::kOverwrite : ExistingResults::kRefuse;
}

// The shard this process takes: --shard, or what the scheduler says.
void ChooseShard(const std::string& text, EvaluationOptions& options) {
  const bool given = !text.empty() && text != "auto";
  const std::optional<Shard> shard = given ? ParseShard(text) : ShardFromEnvironment();
  if (!shard && text == "auto") {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--shard auto: neither SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT nor "
                     "JOB_COMPLETION_INDEX and JOB_COMPLETION_COUNT are set; give --shard i/N");
  }
  if (!shard) return;
  options.shard_index = shard->index;
  options.shard_count = shard->count;
  if (!given) {
    std::fprintf(stderr, "shard %s, as the scheduler says (--shard 0/1 for the whole)\n",
                 ToString(*shard).c_str());
  }
}

// "; the slowest decision but the first: 5.3 ms, 4.9 of it denoise, at 2026-11-26T00:12:33Z", which
// scripts/soak reads; "" where there is none.
std::string SlowestText(const SlowestDecision& slowest) {
  if (slowest.milliseconds <= 0) return "";
  const auto ago = std::chrono::duration<double>(mjp::Now() - slowest.at);
  const auto at = std::chrono::system_clock::now() -
                  std::chrono::duration_cast<std::chrono::system_clock::duration>(ago);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(at);
  std::tm utc;
  char time[32], text[160];
  std::strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&seconds, &utc));
  std::snprintf(text, sizeof(text),
                "; the slowest decision but the first: %.3f ms, %.3f of it %s, at %s",
                slowest.milliseconds, slowest.stage_milliseconds, slowest.stage.c_str(), time);
  return text;
}

// Makes the policy, with half the batch for as long as the GPU has no room for it.
std::unique_ptr<mjp::Policy> CreateWithinMemory(
    const std::shared_ptr<const mjp::Checkpoint>& checkpoint, mjp::PolicyOptions& options) {
  while (true) {
    try {
      return mjp::Policy::Create(checkpoint, options);
    } catch (const mjp::OutOfDeviceMemory& error) {
      if (options.batch == 1) throw;
      options.batch /= 2;
      std::fprintf(stderr, "%s; going on with --batch %d\n", error.what(), options.batch);
    }
  }
}

void CheckSeeds(const EvaluationOptions& options) {
  if (options.seed <= kLastSeed - static_cast<uint32_t>(options.episodes - 1)) return;
  throw mjp::Error(mjp::ExitCode::kUsage, "--seed " + std::to_string(options.seed) + ": " +
                                              std::to_string(options.episodes) +
                                              " episodes would go past the last seed, " +
                                              std::to_string(kLastSeed));
}

int CodeOf(const Figures& figures) {
  return static_cast<int>(figures.invalid > 0 ? mjp::ExitCode::kPartial : mjp::ExitCode::kOk);
}

// Prints the results as they stand in eval_info.json.
int PrintJson(const std::string& out, const Figures& figures) {
  const std::vector<uint8_t> text = mjp::ReadFile(out + "/eval_info.json", kLogLimit);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return CodeOf(figures);
}

// Says so where `videos` is fewer than --videos asks for: a finished episode is not run again.
void SayMissingVideos(const EvaluationOptions& options, size_t videos) {
  const std::vector<int> indices = ShardIndices(options);
  const auto wanted = static_cast<size_t>(
      std::ranges::count_if(indices, [&](int index) { return index < options.videos; }));
  if (videos >= wanted) return;
  std::fprintf(stderr,
               "%zu of %zu videos are missing: finished episodes are not run again for them; "
               "--overwrite in place of --resume makes all anew\n",
               wanted - videos, wanted);
}

// What --resume does where nothing is left to do, in a folder that it need not be able to write.
int ShowComplete(const Task& task, const std::map<int, EpisodeResult>& episodes,
                 const Arguments& arguments) {
  const std::string& out = arguments.out;
  const Figures figures = Summarise(episodes, task.measures());
  SayMissingVideos(arguments.evaluation, VideosIn(out, episodes).size());
  if (arguments.json) return PrintJson(out, figures);
  std::printf("%sresults         %s/eval_info.json (complete already)\n",
              FiguresText(figures, ScoreMeaning(task.name())).c_str(), out.c_str());
  return CodeOf(figures);
}

// Says so where --resume finds nothing: a mistyped folder looks like a new one. It is no error, for
// jobs that are started again always give --resume.
void SayNothingToResume(const std::string& out) {
  if (HoldsResults(out)) return;
  std::fprintf(stderr, "%s: holds no results to go on with; --resume starts a new evaluation\n",
               out.c_str());
}

// What `evaluate` gives. Where it fails before an episode has ended, nothing stays in the folder
// that would refuse the next try.
template <typename Function>
EvaluationResult EvaluateInto(ResultsFolder& folder, const Function& evaluate) {
  try {
    return evaluate();
  } catch (...) {
    if (folder.finished().empty()) folder.Discard();
    throw;
  }
}

int Run(Arguments& arguments) {
  EvaluationOptions& options = arguments.evaluation;
  CheckSeeds(options);
  ChooseShard(arguments.shard, options);
  const std::unique_ptr<Task> made = arguments.task.Make(options);
  const Task& task = *made;
  const auto checkpoint = mjp::LoadCheckpoint(options.checkpoint);
  options.policy.batch = ResolveBatch(options);
  options.policy.sampler.hold_noise = mjp::ResolveHoldNoise(
      options.policy.sampler, *checkpoint, ResolveActionSteps(options, checkpoint->config));
  options.video_folder = arguments.out + "/videos";
  std::unique_ptr<mjp::Policy> policy = CreateWithinMemory(checkpoint, options.policy);
  const std::string run = RunText(task, options, *policy, ProjectVersion());
  if (arguments.resume) {
    const auto complete = CompleteResults(arguments.out, run, ShardIndices(options));
    if (complete) {
      CheckSummary(arguments.out + "/eval_info.json", run, task.measures(), *complete);
      return ShowComplete(task, *complete, arguments);
    }
    SayNothingToResume(arguments.out);
  }
  const std::string unlike = UnlikeTraining(task, *policy);
  const std::vector<int> indices = ShardIndices(options);
  // what is refused leaves the folder as it was
  const auto evaluation = MakeEvaluation(task, options, std::move(policy), indices.size());
  ResultsFolder folder(arguments.out, run, Existing(arguments));
  std::vector<int> pending;
  for (const int index : indices) {
    if (!folder.finished().contains(index)) pending.push_back(index);
  }
  const std::atomic<bool>& stop = StopOnSignal();
  if (!unlike.empty()) std::fprintf(stderr, "%s: %s\n", options.checkpoint.c_str(), unlike.c_str());
  std::fprintf(stderr, "evaluating %s: %zu episode%s from seed %u\n", options.checkpoint.c_str(),
               indices.size(), indices.size() == 1 ? "" : "s", options.seed);
  Progress progress(pending.size() + folder.finished().size(), folder.finished());
  const auto done = [&](const EpisodeResult& episode) {
    folder.Append(episode);
    progress.Add(episode);
  };
  EvaluationResult result =
      EvaluateInto(folder, [&] { return evaluation->Run(pending, done, stop); });
  if (result.interrupted) {
    std::fprintf(stderr, "\nstopped; %zu episodes are kept, go on with --resume%s\n",
                 folder.finished().size(), SlowestText(result.slowest).c_str());
    return StoppedExitCode();
  }
  result.videos = VideosIn(arguments.out, folder.finished());
  folder.Finish(SummaryText(run, task.measures(), folder.finished(), result));
  const Figures figures = Summarise(folder.finished(), task.measures());
  SayMissingVideos(options, result.videos.size());
  if (arguments.json) return PrintJson(arguments.out, figures);
  std::printf("%spolicy          %s\ntime            %.1f s\nresults         %s/eval_info.json\n",
              FiguresText(figures, ScoreMeaning(task.name())).c_str(), result.backend.c_str(),
              result.seconds, arguments.out.c_str());
  for (const std::string& video : result.videos) std::printf("video           %s\n", video.c_str());
  return CodeOf(figures);
}

void AddConditions(CLI::App& command, Conditions& conditions) {
  const std::string group = "Conditions";
  command
      .add_option("--picture-noise", conditions.picture_noise,
                  "Noise of every pixel value, standard deviation")
      ->type_name("LEVELS")
      ->check(NumberRange(0.0, 255.0))
      ->group(group);
  command
      .add_option("--brightness", conditions.brightness,
                  "Largest relative change of brightness, drawn per episode")
      ->check(NumberRange(0.0, 1.0))
      ->group(group);
  command
      .add_option("--picture-shift", conditions.picture_shift,
                  "Largest shift of the picture, drawn per episode")
      ->type_name("PIXELS")
      ->check(CLI::Range(0, 48))
      ->group(group);
  command
      .add_option("--action-noise", conditions.action_noise,
                  "Noise of every number of an action, standard deviation, the policy's unit")
      ->check(NumberRange(0.0, 100.0))
      ->group(group);
}

}  // namespace

Action AddEvaluate(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  EvaluationOptions& options = arguments->evaluation;
  options.policy.batch = 64;
  CLI::App* command = app.add_subcommand("evaluate", "Score a checkpoint on a task");
  arguments->task.AddTo(*command, options);
  command->add_option("--checkpoint", options.checkpoint, "Checkpoint directory")
      ->required()
      ->type_name("DIR");
  command->add_option("--episodes", options.episodes, "Number of episodes")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Seed of the first episode; episode i has seed + i")
      ->check(CLI::Range(0u, kLastSeed))
      ->capture_default_str();
  command->add_option("--max-steps", options.max_steps, "Control steps of an episode")
      ->check(CLI::Range(1, 100000))
      ->default_str("as the task");
  AddPolicyOptions(*command, options.policy);
  command
      ->add_option("--batch", options.policy.batch,
                   "Environments beside each other; on the GPU kernels are chosen by it")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--action-steps", options.action_steps, "Actions executed per decision")
      ->check(CLI::Range(1, 1000))
      ->default_str("as the checkpoint");
  command
      ->add_option("--replan-beyond", options.replan_beyond,
                   "Take a new chunk only where it departs by more than this from the rest of the "
                   "last, the policy's unit (0: always)")
      ->check(NumberRange(0.0, mjp::kMostReplanBeyond))
      ->default_str("as the checkpoint; with --action-steps 0");
  command
      ->add_option("--replan-after", options.replan_after,
                   "With --replan-beyond: take a new chunk after so many control steps in any case")
      ->check(CLI::Range(1, 1000))
      ->default_str("as many as the checkpoint executes");
  command->add_flag("--prefix", options.policy.sampler.prefix,
                    "Hold fixed in a chunk what is executed until it acts");
  command
      ->add_option("--warm-start", options.policy.sampler.warm_start,
                   "With --prefix: begin a chunk at the plan before, in the place of so many "
                   "denoising steps")
      ->check(CLI::Range(0, 9999))
      ->type_name("STEPS");
  AddConditions(*command, options.conditions);
  command->add_option("--out", arguments->out, "Folder of the results")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--shard", arguments->shard,
                   "Take part i of N, or what Slurm or Kubernetes say (auto; the default where "
                   "they do); see docs/DISTRIBUTED.md")
      ->type_name("i/N");
  command->add_option("--videos", options.videos, "Videos of the first episodes")
      ->check(CLI::Range(0, 100000));
  command->add_flag("--json", arguments->json, "Print the results as JSON, not as a table");
  CLI::Option* resume = command->add_flag("--resume", arguments->resume,
                                          "Go on with the evaluation in --out, or start it");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the results in --out")
      ->excludes(resume);
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app

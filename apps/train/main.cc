// mjpolicy-train: trains a diffusion policy, on recorded demonstrations of any task or on those of
// Push-T's planner.

#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>

#include "apps/stop_signal.h"
#include "apps/train/distillation/distill.h"
#include "apps/train/imitation/train_by_lessons.h"
#include "apps/train/imitation/train_on_dataset.h"
#include "apps/train/option_kinds.h"
#include "apps/train/recipe.h"
#include "apps/train/run_folder.h"
#include "apps/train/run_length.h"
#include "base/command_line/number_range.h"
#include "base/command_line/parse.h"
#include "base/command_line/suggest.h"
#include "base/command_line/time_option.h"
#include "base/error.h"
#include "policy/policy.h"
#include "policy/prefix/event_replanning.h"
#include "tasks/evaluation/program.h"
#include "tasks/evaluation/version.h"

namespace {

constexpr int kMany = 1000000000;
constexpr int kMostChannels = 8192;  // as in config.json (policy/ranges)

void AddDataOptions(CLI::App& app, mjp::app::TrainOptions& options) {
  app.add_option("--data", options.data.folders, "Folders that `mjpolicy demonstrate` made")
      ->type_name("DIR");
  app.add_option("--demonstrate", options.data.rows,
                 "Rows to make meanwhile, in <out>/demonstrations, on all cores")
      ->check(CLI::Range(0, kMany));
  app.add_option("--recording", options.data.recordings,
                 "Recorded episodes: PREFIX of _state.npy, _action.npy and _episode_ends.npy")
      ->type_name("PREFIX");
  mjp::app::PlannerOptions& planner = options.data.planner;
  app.add_option("--planner-samples", planner.samples, "Candidates per round of the planner")
      ->check(CLI::Range(32, 65536));
  app.add_option("--planner-rounds", planner.rounds, "Rounds of the planner")
      ->check(CLI::Range(1, 16));
  app.add_option("--speed-limit", planner.cost.speed_limit,
                 "Pixels per control step beyond which a plan is dear")
      ->check(mjp::app::NumberRange(1, 100));
  app.add_option("--rounds", options.rounds.count,
                 "Rounds in which the student's own decisions are labelled")
      ->check(CLI::Range(0, 1000));
  app.add_option("--episodes", options.rounds.episodes, "Of every round")
      ->check(CLI::Range(1, 4096));
  app.add_option("--disturbed-episodes", options.rounds.disturbed_episodes,
                 "Of every round, with pushes, latency and unsteady actions")
      ->check(CLI::Range(0, 4096));
  app.add_option("--original-episodes", options.rounds.original_episodes,
                 "Of every round, in the benchmark's original physics (libchipmunk)")
      ->check(CLI::Range(0, 4096));
  app.add_option("--late-episodes", options.rounds.late_episodes,
                 "Of every round, with decisions that act 4 control steps late and know what is "
                 "executed meanwhile; with --prefix-share")
      ->check(CLI::Range(0, 4096));
}

// A size that is written as pictures are called: 320x240 has 240 rows.
void AddSize(CLI::App& app, const char* name, const char* help, const char* group, int& height,
             int& width) {
  app.add_option_function<std::string>(
         name,
         [name, &height, &width](const std::string& text) {
           char rest = 0;
           const bool read = std::sscanf(text.c_str(), "%dx%d%c", &width, &height, &rest) == 2;
           if (read && width >= 1 && width <= 4096 && height >= 1 && height <= 4096) return;
           throw mjp::Error(mjp::ExitCode::kUsage,
                            std::string(name) + ": '" + text + "' is no size such as 320x240");
         },
         help)
      ->type_name("WxH")
      ->group(group);
}

void AddDatasetOptions(CLI::App& app, mjp::app::ImitationOptions& imitation) {
  auto* dataset = app.add_option("--dataset", imitation.data.folder,
                                 "A LeRobotDataset of any task, such as `mjpolicy record` makes")
                      ->type_name("DIR")
                      ->group("Data set");
  for (const char* name : {"--data", "--demonstrate", "--recording", "--rounds"}) {
    dataset->excludes(app.get_option(name));
  }
  app.add_option("--camera", imitation.data.cameras, "Features of its pictures; all without")
      ->type_name("NAME")
      ->group("Data set");
  app.add_option("--validation", imitation.data.validation, "Share of the episodes held out")
      ->check(mjp::app::NumberRange(0, 0.5))
      ->group("Data set");
  app.add_option("--observation-steps", imitation.shape.observation_steps,
                 "Control steps that a decision sees")
      ->check(CLI::Range(1, 64))
      ->group("Data set");
  app.add_option("--horizon", imitation.shape.horizon, "Actions in a chunk")
      ->check(CLI::Range(2, 1024))
      ->group("Data set");
  auto* task = app.add_option("--task", imitation.score.task,
                              "Score the policy in this task file while it is trained")
                   ->type_name("MODEL.xml")
                   ->needs(dataset)
                   ->group("Data set");
  app.add_option("--evaluate-every", imitation.score.every,
                 "Training between two scored evaluations: 10min, 600; the end has one too")
      ->type_name("SECONDS")
      ->transform(mjp::app::TimeIn(mjp::kSecond, 1, kMany))
      ->needs(task)
      ->default_str("10min")
      ->group("Data set");
  app.add_option("--evaluate-episodes", imitation.score.episodes, "Of each evaluation")
      ->check(CLI::Range(1, 10000))
      ->needs(task)
      ->capture_default_str()
      ->group("Data set");
  AddSize(app, "--resize", "Resize the pictures, before they are cropped", "Data set",
          imitation.shape.resize_height, imitation.shape.resize_width);
  AddSize(app, "--crop", "Crop them, at random places in training", "Data set",
          imitation.shape.crop_height, imitation.shape.crop_width);
}

void AddLessonOptions(CLI::App& app, mjp::app::LessonTraining& lessons) {
  auto* expert = app.add_option("--expert", lessons.model,
                                "A task file (docs/tasks.md) whose expert teaches; --rounds of "
                                "--episodes then are lessons from where the student got to")
                     ->type_name("MODEL.xml")
                     ->group("Lessons");
  for (const char* name : {"--data", "--demonstrate", "--recording", "--dataset", "--camera"}) {
    expert->excludes(app.get_option(name));
  }
  app.add_option("--lessons", lessons.lessons, "Of the expert alone, before the training")
      ->check(CLI::Range(1, kMany))
      ->group("Lessons");
  app.add_option("--lesson-noise", lessons.how.noise,
                 "Mean deviation of executed from taught actions, share of their range")
      ->check(mjp::app::NumberRange(0, 1))
      ->group("Lessons");
  app.add_option("--lesson-style", lessons.how.style, "Seed of the expert's way of doing it")
      ->group("Lessons");
  app.add_option("--picture-every", lessons.how.picture_every,
                 "Control steps from one drawn frame of a lesson to the next")
      ->check(CLI::Range(1, 1000))
      ->group("Lessons");
  AddSize(app, "--picture", "Size of the cameras' pictures", "Lessons", lessons.how.height,
          lessons.how.width);
}

void AddDistillation(CLI::App& app, std::string& teacher, mjp::app::TrainOptions& options) {
  auto* distill =
      app.add_option("--distill", teacher,
                     "A policy for Push-T: its student, which needs one network pass, is made")
          ->type_name("DIR");
  for (const char* name : {"--dataset", "--expert", "--data", "--demonstrate", "--recording"}) {
    distill->excludes(app.get_option(name));
  }
  app.add_option("--teacher-steps", options.teacher_steps,
                 "With --distill: steps of DDIM, whose end it learns")
      ->check(CLI::Range(1, 100));
}

void AddRunOptions(CLI::App& app, mjp::app::TrainOptions& options, int& gpus) {
  app.add_option("--out", options.out, "Folder of the run; one that exists is continued")
      ->required()
      ->type_name("DIR");
  app.add_option("--steps", options.steps, "Length of the training in steps")
      ->check(CLI::Range(0, kMany));
  app.add_option("--seconds", options.seconds,
                 "Length of the training in seconds, from the log's first line on")
      ->type_name("SECONDS")
      ->transform(mjp::app::TimeIn(mjp::kSecond, 0, kMany));
  app.add_option("--gpus", gpus, "Share every batch between so many GPUs of this machine")
      ->check(CLI::Range(1, 64));
  app.add_option("--threads", options.data.threads, "CPU threads; 0: all cores")
      ->check(CLI::Range(0, 1024));
  app.add_option("--seed", options.seed, "Of weights, batches and noise")
      ->check(mjp::app::WholeSeed());
  app.add_option("--device", options.device, "auto, cuda, cuda:<index> or cpu")
      ->type_name("DEVICE");
  app.add_flag("--full-precision", options.full_precision, "float32 instead of bfloat16");
  app.add_option("--save-every", options.save_every, "Between saved states")
      ->type_name("SECONDS")
      ->transform(mjp::app::TimeIn(mjp::kSecond, 0, kMany));
  app.add_option("--log-every", options.log_every, "Steps between lines of the log")
      ->check(CLI::Range(1, kMany));
}

// What config.json says of the policy's use; no weight depends on it.
void AddExecutionOptions(CLI::App& app, mjp::app::Execution& execution) {
  app.add_option("--temperature", execution.temperature,
                 "Deviation of the noise that it makes a chunk from; it learns from 1")
      ->check(mjp::app::NumberRange(0, mjp::kMostTemperature));
  app.add_option("--replan-every", execution.replan_every,
                 "Control steps from decision to decision")
      ->check(CLI::Range(1, 1024))
      ->default_str("as --action-steps");
  app.add_option("--replan-beyond", execution.replan_beyond,
                 "A new chunk is taken where it departs by more than this from the rest of the "
                 "last, the policy's unit")
      ->check(mjp::app::NumberRange(0, mjp::kMostReplanBeyond));
}

void AddNetworkOptions(CLI::App& app, mjp::app::ArchitectureOptions& architecture,
                       mjp::app::OptimizerOptions& optimizer) {
  app.add_option("--network,--architecture", architecture.name, "Which network")
      ->type_name("")
      ->check(mjp::app::OneOf({"compact", "lerobot", "dit"}));
  app.add_option("--objective", architecture.objective, "How the transformer is trained")
      ->type_name("")
      ->check(mjp::app::OneOf({"diffusion", "flow"}));
  app.add_option("--dit-hidden", architecture.hidden, "Width of the transformer")
      ->check(CLI::Range(16, kMostChannels));
  app.add_option("--dit-layers", architecture.layers, "Its blocks")->check(CLI::Range(1, 64));
  app.add_option("--dit-heads", architecture.heads, "Its attention's heads")
      ->check(CLI::Range(1, 64));
  app.add_option("--unet-channels", architecture.unet_channels, "Of the U-Net, per level")
      ->check(CLI::Range(8, kMostChannels));
  app.add_option("--stage-channels", architecture.stage_channels, "Of the encoder, per stage")
      ->check(CLI::Range(1, kMostChannels));
  app.add_option("--stem-channels", architecture.stem_channels, "Of the encoder's first layer")
      ->check(CLI::Range(8, kMostChannels));
  app.add_option("--prediction", architecture.prediction, "What the network tells")
      ->type_name("")
      ->check(mjp::app::OneOf({"epsilon", "sample", "v"}));
  app.add_option("--action-steps", architecture.action_steps, "Actions executed of a chunk")
      ->check(CLI::Range(1, 1024));
  AddExecutionOptions(app, architecture.execution);

  app.add_option("--learning-rate", optimizer.learning_rate, "At its peak")
      ->check(mjp::app::NumberRange(1e-12, 10));
  app.add_option("--weight-decay", optimizer.weight_decay, "On matrices")
      ->check(mjp::app::NumberRange(0, 10));
  app.add_option("--warmup", optimizer.warmup_steps, "Steps up to the full learning rate")
      ->check(CLI::Range(0, kMany));
  app.add_option("--average-decay", optimizer.average_decay, "Of the moving average")
      ->check(mjp::app::NumberRange(0, 1));
}

void AddStepOptions(CLI::App& app, mjp::app::StepOptions& step) {
  app.add_option("--batch", step.batch, "Observations per step")->check(CLI::Range(1, 65536));
  app.add_option("--draws", step.draws, "Noise levels per observation")->check(CLI::Range(1, 1024));
  app.add_option("--auxiliary-weight", step.auxiliary_weight, "Of the block's corners' loss")
      ->check(mjp::app::NumberRange(0, 1e6));
  auto* share = app.add_option("--prefix-share", step.prefix_share,
                               "Share of chunks whose first actions, up to 4, are known; --prefix "
                               "then shows them to the policy without noise")
                    ->check(mjp::app::NumberRange(0.01, 1));
  app.get_option("--late-episodes")->needs(share);
  app.add_flag("--reflect", step.reflect, "Mirror half of the rows about the goal's axis");
  app.add_option("--disturbed", step.augmentation.share, "Share of disturbed observations")
      ->check(mjp::app::NumberRange(0, 1));
  app.add_option("--picture-noise", step.augmentation.noise, "Up to so many levels")
      ->check(mjp::app::NumberRange(0, 255));
  app.add_option("--brightness", step.augmentation.brightness, "Up to this relative change")
      ->check(mjp::app::NumberRange(0, 1));
  app.add_option("--shift", step.augmentation.shift, "Up to so many pixels")
      ->check(CLI::Range(0, 48));
}

int RunMain(int argc, char** argv) {
  CLI::App app("Trains a diffusion policy on demonstrations", "mjpolicy-train");
  mjp::app::TrainOptions options;
  mjp::app::ImitationOptions imitation;
  mjp::app::LessonTraining lessons;
  std::string teacher;
  int gpus = 1;
  mjp::app::AddCommonOptions(app, mjp::app::VersionText("mjpolicy-train"));
  AddDataOptions(app, options);
  AddDatasetOptions(app, imitation);
  AddLessonOptions(app, lessons);
  AddDistillation(app, teacher, options);
  AddRunOptions(app, options, gpus);
  AddNetworkOptions(app, options.architecture, options.optimizer);
  AddStepOptions(app, options.step);
  if (const auto code = mjp::app::ParseCommandLine(app, argc, argv)) return *code;
  mjp::app::CheckOptionKinds(app);
  mjp::app::CheckLength(options);  // before a folder is made
  const std::atomic<bool>& stop = mjp::app::StopOnSignal();
  mjp::app::Ranks ranks(gpus);
  std::optional<mjp::FileDescriptor> folder;
  if (ranks.rank() == 0) folder.emplace(mjp::app::OpenRunFolder(options.out));
  std::ofstream silence;
  std::ostream& progress = ranks.rank() == 0 ? std::cout : silence;
  bool complete = false;
  try {
    complete = !teacher.empty() ? mjp::app::Distill(teacher, options, ranks, progress, stop)
               : !lessons.model.empty()
                   ? mjp::app::TrainByLessons(lessons, imitation, options, ranks, progress, stop)
               : imitation.data.folder.empty()
                   ? mjp::app::Train(options, ranks, progress, stop)
                   : mjp::app::TrainOnDataset(imitation, options, ranks, progress, stop);
  } catch (const mjp::app::Stopped&) {  // before there was anything to save
  }
  ranks.EndOthers();
  if (complete) return 0;
  std::fprintf(stderr, "mjpolicy-train: stopped; start the same command again to go on\n");
  return mjp::app::StoppedExitCode();
}

}  // namespace

int main(int argc, char** argv) {
  return mjp::app::RunProgram("mjpolicy-train", [&] { return RunMain(argc, argv); });
}

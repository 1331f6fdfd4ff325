#include "apps/tasks/task_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/command_line.h"
#include "base/command_line/duration.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "tasks/evaluation/disturbances.h"
#include "tasks/mjcf/mjcf_task.h"
#include "tasks/mjcf/words.h"
#include "tasks/pusht/evaluation/pusht_task.h"
#include "tasks/task_names.h"

namespace mjp::app {
namespace {

// The code simulates the project's own model: a file that says so must be the same.
void CheckModelOfCode(const TaskFile& file, const std::string& models_file) {
  const TaskFile own(ModelPath(models_file));
  if (file.model_hash() == own.model_hash()) return;
  throw BadInput(file.path() + ": text task.code is \"" + file.code() + "\", which simulates " +
                 own.path() +
                 ", and this is another model: evaluate that file, or take the text "
                 "out and say starts and judgement by elements (docs/tasks.md)");
}

// "2" or "200ms" in control steps of `period` seconds.
int LatencySteps(const std::string& text, double period) {
  constexpr double kMost = 8;
  const bool plain = text.find_first_not_of("0123456789") == std::string::npos;
  const auto seconds = ParseDuration(text, period);
  const double steps = seconds ? std::round(*seconds / period) : -1;
  if (steps >= 0 && steps <= kMost && (plain || std::abs(steps * period - *seconds) < 1e-9)) {
    return static_cast<int>(steps);
  }
  throw Error(ExitCode::kUsage, "--latency: '" + text + "' is no number from 0 to 8 of control " +
                                    "steps of " + DurationText(period) + " each");
}

}  // namespace

void TaskChoice::AddTo(CLI::App& command, EvaluationOptions& options) {
  CLI::Option* file = command.add_option("model", file_, "Task file (docs/tasks.md), else --task")
                          ->type_name("MODEL.xml");
  command.add_option("--task", task_, "A task that is code of this project")
      ->type_name("")
      ->check(OneOf(TaskNames()))
      ->default_str(kDefaultTask)
      ->excludes(file);
  AddChoice<Through>(
      command, "--through",
      "Policy beside a batch of episodes, or in the plugin, one at a time: what task "
      "files take without --batch and disturbances",
      {{"batch", Through::kBatch}, {"plugin", Through::kPlugin}}, options.through);
  through_ = command.get_option("--through");
  command_ = &command;
  command
      .add_option("--latency", latency_,
                  "Control steps from an observation to its first action, or their time (200ms)")
      ->type_name("STEPS")
      ->group("Conditions");
  AddChoice<RendererKind>(command, "--renderer", "Who draws the policy's pictures",
                          {{"raster", RendererKind::kRaster}, {"mujoco", RendererKind::kMujoco}},
                          pusht_.renderer);
  AddChoice<PhysicsKind>(command, "--physics", "The engine; chipmunk is the original",
                         {{"mujoco", PhysicsKind::kMujoco}, {"chipmunk", PhysicsKind::kChipmunk}},
                         pusht_.physics);
  CLI::Option* push =
      command
          .add_option("--push", pusht_.push, "Push of the block every two seconds, of the world")
          ->type_name("PIXELS")
          ->check(NumberRange(0.0, 100.0));
  command
      .add_option("--pushes", pusht_.pushes, "So many pushes, at random moments of the first 15 s")
      ->type_name("N")
      ->check(CLI::Range(1, 100))
      ->default_str("one every two seconds")
      ->needs(push);
  command.add_option("--success", pusht_.success_coverage, "Coverage that counts as success")
      ->check(NumberRange(0.0, 1.0))
      ->capture_default_str();
  for (const char* name : {"--renderer", "--physics", "--push", "--pushes", "--success"}) {
    pusht_options_.push_back(command.get_option(name)->group("Push-T"));
  }
}

void TaskChoice::RefusePushtOptions() const {
  for (const CLI::Option* option : pusht_options_) {
    if (option->count() == 0) continue;
    throw Error(ExitCode::kUsage, option->get_name() + " is an option of Push-T: " + file_ +
                                      " says by elements how it is simulated and judged");
  }
}

// Whether `option`, which not every command has, is given.
bool TaskChoice::Given(const char* option) const {
  const CLI::Option* found = command_->get_option_no_throw(option);
  return found && found->count() > 0;
}

// Whether what is asked for needs a policy beside the batch.
bool TaskChoice::WantsBatch(const Conditions& conditions) const {
  return Given("--batch") || DisturbsPictures(conditions) || conditions.action_noise != 0;
}

std::unique_ptr<Task> TaskChoice::Make(EvaluationOptions& options) const {
  const auto set_latency = [&](double period) {
    if (!latency_.empty()) options.conditions.latency = LatencySteps(latency_, period);
  };
  if (options.through == Through::kPlugin && options.policy.batch > 1 && Given("--batch")) {
    throw Error(ExitCode::kUsage, "--batch " + std::to_string(options.policy.batch) +
                                      ": --through plugin runs one episode at a time for each of "
                                      "--threads; leave it out, or give --through batch");
  }
  if (file_.empty()) {
    set_latency(kSubsteps * kTimestep);
    return std::make_unique<PushtTask>(pusht_);
  }
  auto file = std::make_shared<const TaskFile>(file_);
  const bool by_elements = file->code().empty();
  if (by_elements && std::ranges::count(TaskNames(), file->name()) > 0) {
    throw BadInput(file_ + ": <mujoco model=\"" + file->name() +
                   "\"> is the name of a task of this project: give it another");
  }
  if (by_elements) RefusePushtOptions();
  set_latency(by_elements ? file->period() : kSubsteps * kTimestep);
  options.hold_noise_given = Given("--hold-noise");
  options.warm_start_given = Given("--warm-start");
  if (by_elements && through_->count() == 0 && !WantsBatch(options.conditions)) {
    options.through = Through::kPlugin;
  }
  return TaskOfFile(std::move(file), options, pusht_);
}

std::unique_ptr<Task> TaskOfFile(std::shared_ptr<const TaskFile> file, EvaluationOptions& options,
                                 const PushtOptions& pusht) {
  const std::string code = file->code();
  if (code == kPusht) {
    CheckModelOfCode(*file, "pusht.xml");
    return std::make_unique<PushtTask>(pusht);
  }
  if (!code.empty()) throw Place{"task.code", ""}.Refuse(NoSuch("task of code", code, TaskNames()));
  TakeAttributes(file->policy().config, options);
  return std::make_unique<MjcfTask>(std::move(file));
}

}  // namespace mjp::app

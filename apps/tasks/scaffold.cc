#include "tasks/mjcf/scaffold/scaffold.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "apps/commands.h"
#include "base/error.h"
#include "base/file.h"
#include "plugin/model/random_checkpoint_command.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string model, out;
  ScaffoldOptions scaffold;
  bool force = false;
};

// Beside the robot, for assets are looked for from there.
fs::path PlaceOf(const Arguments& arguments) {
  const fs::path robot = arguments.model;
  const fs::path beside = robot.parent_path() / (robot.stem().string() + "_task.xml");
  const fs::path out = arguments.out.empty() ? beside : fs::path(arguments.out);
  std::error_code none;
  if (!fs::equivalent(fs::absolute(out).parent_path(), fs::absolute(robot).parent_path(), none)) {
    throw Error(ExitCode::kUsage, out.string() + ": the file must lie beside " + robot.string() +
                                      ", from where its meshes are looked for");
  }
  if (!arguments.force && fs::exists(out, none)) {
    throw Error(ExitCode::kUsage,
                out.string() + " is there already; give --force to replace it, or another --out");
  }
  return out;
}

// Writes the text where it is a task that loads, and leaves what is there where it is none.
TaskFile Propose(const fs::path& out, const std::string& text) {
  const std::string draft = out.string() + ".draft";
  const std::span bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  WriteFileAtomically(draft, bytes);
  try {
    TaskFile file(draft);
    WriteFileAtomically(out.string(), bytes);
    fs::remove(draft);
    return file;
  } catch (const Error& error) {
    std::error_code none;
    fs::remove(draft, none);
    throw Error(error.code(),
                out.string() + ": not written, for the proposal is no task: " + error.what());
  }
}

// Says where a mocap body holds the robot: whoever moves that is no actuator.
void WarnOfMocap(const mjModel* model) {
  for (int i = 0; i < model->neq; ++i) {
    const bool bodies = model->eq_objtype[i] == mjOBJ_BODY &&
                        (model->eq_type[i] == mjEQ_WELD || model->eq_type[i] == mjEQ_CONNECT);
    for (const int body : {model->eq_obj1id[i], model->eq_obj2id[i]}) {
      if (!bodies || model->body_mocapid[body] < 0) continue;
      const char* name = mj_id2name(model, mjOBJ_BODY, body);
      std::printf(
          "warning         mocap body \"%s\" pulls the robot, and a policy drives actuators "
          "alone: give the joints position servos, or the policy cannot move them\n",
          name ? name : "");
    }
  }
}

int Run(Arguments& arguments) {
  const ModelPtr model = CompileWithoutPolicy(arguments.model);
  if (FindPolicy(model.get()) >= 0) {
    throw BadInput(arguments.model + " has a policy already: edit that, docs/tasks.md explains it");
  }
  const fs::path out = PlaceOf(arguments);
  arguments.scaffold.include = fs::path(arguments.model).filename().string();
  arguments.scaffold.checkpoint = fs::path(arguments.model).stem().string() + "_random";
  const TaskFile file = Propose(out, ScaffoldText(model.get(), arguments.scaffold));
  const Outline& policy = file.policy();
  std::printf("task file       %s\nstate           %d numbers\naction          %d numbers\n",
              out.c_str(), policy.state.size(), policy.controls.action_size());
  WarnOfMocap(model.get());
  std::printf("next            edit the lines with EDIT, then: mjpolicy check %s\n", out.c_str());
  const std::string command =
      RandomCheckpointCommand(file.model(), policy.config, policy.config.checkpoint);
  if (!command.empty()) std::printf("to try it       %s\n", command.c_str());
  return 0;
}

}  // namespace

Action AddScaffold(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("scaffold", "Propose a task file for a robot's model");
  command->add_option("model", arguments->model, "The robot's MJCF")
      ->required()
      ->type_name("ROBOT.xml");
  command->add_option("--camera", arguments->scaffold.camera, "What the policy sees")
      ->type_name("NAME");
  command->add_option("--actuators", arguments->scaffold.actuators, "What it drives")
      ->type_name("NAME")
      ->default_str("all");
  command->add_option("--out", arguments->out, "The task file, beside ROBOT.xml")
      ->type_name("FILE")
      ->default_str("ROBOT_task.xml");
  command->add_flag("--force", arguments->force, "Replace a file that is there");
  command->footer(
      "Examples:\n"
      "  mjpolicy scaffold robot/arm.xml --camera front\n"
      "  mjpolicy scaffold robot/arm.xml --camera front --actuators shoulder elbow");
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app

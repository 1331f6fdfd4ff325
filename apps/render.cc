#include <cstdio>
#include <memory>

#include "apps/commands.h"
#include "apps/tasks/task_option.h"
#include "base/npy.h"
#include "tasks/pusht/pictures/render_states.h"

namespace mjp::app {
namespace {

struct Arguments {
  std::string states, renderer = "raster", out;
};

}  // namespace

Action AddRender(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("render", "Draw states as the policy sees them");
  AddTaskOption(*command);
  command
      ->add_option("--states", arguments->states,
                   "States (N, 5): agent x, y, block x, y, angle (.npy)")
      ->required()
      ->type_name("FILE");
  command->add_option("--renderer", arguments->renderer, "Who draws")
      ->type_name("")
      ->check(OneOf({"raster", "mujoco"}))
      ->capture_default_str();
  command->add_option("--out", arguments->out, "Pictures (N, 96, 96, 3), uint8 (.npy)")
      ->required()
      ->type_name("FILE");
  return [arguments] {
    const NpyArray pictures = RenderStates(ReadNpy(arguments->states), arguments->renderer);
    WriteNpy(arguments->out, pictures);
    std::printf("%lld pictures -> %s\n", static_cast<long long>(pictures.shape[0]),
                arguments->out.c_str());
    return 0;
  };
}

}  // namespace mjp::app

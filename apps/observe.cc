#include <cstdio>
#include <memory>

#include "apps/commands.h"
#include "apps/tasks/task_option.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "base/npy.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/safetensors_writer.h"
#include "tasks/pusht/observation.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/pictures/render_states.h"

namespace mjp::app {
namespace {

struct Arguments {
  std::string checkpoint, out;
  uint32_t seed = 100000;
  int count = 1;
  bool blank = false;
};

constexpr int kPictureSide = 96, kAgentDim = 2, kVerticesDim = 16;

// Throws Error for a policy that wants what Push-T does not show.
void CheckPusht(const mjp::PolicyConfig& config, const std::string& checkpoint) {
  const bool cameras = config.cameras.empty() ||
                       (config.cameras.size() == 1 && config.cameras[0].height == kPictureSide &&
                        config.cameras[0].width == kPictureSide);
  if (cameras && config.state_dim == kAgentDim &&
      (config.environment_dim == 0 || config.environment_dim == kVerticesDim)) {
    return;
  }
  throw BadInput(checkpoint +
                 ": looks at something else than Push-T shows; --blank writes a file with the "
                 "names and shapes of its inputs, to be filled in");
}

// Repeats each of `count` blocks of values: an episode's first observation holds one moment.
template <class T>
std::vector<T> Repeated(const std::vector<T>& values, int count, int times) {
  const auto size = static_cast<ptrdiff_t>(values.size()) / count;
  std::vector<T> all;
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < times; ++k)
      all.insert(all.end(), values.begin() + i * size, values.begin() + (i + 1) * size);
  }
  return all;
}

struct Starts {
  std::vector<uint8_t> pictures;
  std::vector<float> agents, vertices;
};

Starts PushtStarts(uint32_t seed, int count) {
  Starts starts;
  std::vector<double> rows;
  for (int i = 0; i < count; ++i) {
    const State state = BenchmarkStart(seed + static_cast<uint32_t>(i));
    for (const double value :
         {state.agent_x, state.agent_y, state.block_x, state.block_y, state.block_angle})
      rows.push_back(value);
    starts.agents.push_back(static_cast<float>(state.agent_x));
    starts.agents.push_back(static_cast<float>(state.agent_y));
    const std::array<float, kVerticesDim> vertices = BlockVertices(state);
    starts.vertices.insert(starts.vertices.end(), vertices.begin(), vertices.end());
  }
  starts.pictures = RenderStates(MakeNpy(rows, {count, 5}), "raster").bytes;
  return starts;
}

int Run(const Arguments& arguments) {
  const auto checkpoint = mjp::LoadCheckpoint(arguments.checkpoint);
  const mjp::PolicyConfig& config = checkpoint->config;
  if (!arguments.blank) CheckPusht(config, arguments.checkpoint);
  const int64_t n = arguments.count, steps = config.n_obs_steps;
  const Starts starts = arguments.blank ? Starts{} : PushtStarts(arguments.seed, arguments.count);
  const auto numbers = [&](const std::vector<float>& values, int dim) {
    return arguments.blank ? std::vector<float>(static_cast<size_t>(n * steps * dim))
                           : Repeated(values, arguments.count, config.n_obs_steps);
  };
  mjp::SafetensorsWriter writer;
  for (const mjp::CameraFeature& camera : config.cameras) {
    const size_t size = size_t{3} * camera.height * camera.width * static_cast<size_t>(n * steps);
    writer.AddBytes("in/" + camera.name, {n, steps, camera.height, camera.width, 3},
                    arguments.blank
                        ? std::vector<uint8_t>(size, 128)
                        : Repeated(starts.pictures, arguments.count, config.n_obs_steps));
  }
  const std::string prefix = "in/";
  if (config.state_dim > 0)
    writer.AddFloats(prefix + mjp::kStateFeature, {n, steps, config.state_dim},
                     numbers(starts.agents, config.state_dim));
  if (config.environment_dim > 0)
    writer.AddFloats(prefix + mjp::kEnvironmentFeature, {n, steps, config.environment_dim},
                     numbers(starts.vertices, config.environment_dim));
  writer.Write(arguments.out);
  std::printf("%d %s -> %s\n", arguments.count,
              arguments.count == 1 ? "observation" : "observations", arguments.out.c_str());
  return 0;
}

}  // namespace

Action AddObserve(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "observe", "Write the observations of a task's starts, as infer reads them");
  AddTaskOption(*command);
  command->add_option("--checkpoint", arguments->checkpoint, "The policy that will look at them")
      ->required()
      ->type_name("DIR");
  command->add_option("--seed", arguments->seed, "Seed of the first start")->check(WholeSeed(32));
  command->add_option("--count", arguments->count, "Starts, of consecutive seeds")
      ->check(CLI::Range(1, 100000));
  command->add_flag("--blank", arguments->blank,
                    "Grey pictures and zeros instead, for a policy of any shape");
  command->add_option("--out", arguments->out, "Observations (.safetensors)")
      ->required()
      ->type_name("FILE");
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app

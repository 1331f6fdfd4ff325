#include "tasks/results/merge.h"

#include <cstdio>
#include <memory>

#include "apps/commands.h"
#include "base/error.h"
#include "tasks/task_names.h"

namespace mjp::app {
namespace {

int Run(const MergeOptions& options) {
  const MergeResult result = Merge(options);
  const bool partial = result.figures.episodes < result.expected;
  std::printf("%sresults         %s/eval_info.json\n",
              FiguresText(result.figures, ScoreMeaning(result.task)).c_str(), options.out.c_str());
  if (result.weights_alone) {
    std::fprintf(
        stderr,
        "the shards are of an earlier build, which kept the hash of the checkpoint's "
        "weights alone: whether all had the same config.json and statistics is not known\n");
  }
  if (partial) {
    std::printf("partial         %d of %d episodes; complete it with evaluate --resume --out %s\n",
                result.figures.episodes, result.expected, options.out.c_str());
  }
  return static_cast<int>(partial || result.figures.invalid > 0 ? mjp::ExitCode::kPartial
                                                                : mjp::ExitCode::kOk);
}

}  // namespace

Action AddMerge(CLI::App& app) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command = app.add_subcommand("merge", "Join the results of evaluate --shard i/N");
  command->add_option("folders", options->folders, "Results folders, one per shard")
      ->required()
      ->type_name("DIR");
  command->add_option("--out", options->out, "Folder of the whole evaluation")
      ->required()
      ->type_name("DIR");
  command->add_flag("--partial", options->partial,
                    "Merge although shards or episodes are missing (exit code 4)");
  command->add_flag("--overwrite", options->overwrite, "Replace the results in --out");
  return [options] { return Run(*options); };
}

}  // namespace mjp::app

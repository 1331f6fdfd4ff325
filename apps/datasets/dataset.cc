#include "datasets/dataset.h"

#include <cstdio>
#include <memory>

#include "apps/commands.h"
#include "apps/stop_signal.h"
#include "base/error.h"
#include "datasets/check.h"
#include "datasets/recording/writer.h"

namespace mjp::app {
namespace {

struct DatasetOptions {
  std::string folder;
  bool quick = false, finish = false;
};

std::string ShapeText(const datasets::Feature& feature) {
  std::string text;
  for (const int64_t extent : feature.shape) {
    text += (text.empty() ? "" : " x ") + std::to_string(extent);
  }
  return text;
}

void Print(const datasets::Dataset& dataset) {
  const datasets::Info& info = dataset.info();
  std::printf("%s: %lld episodes, %lld frames, %d frames/s, %.1f s\n", dataset.folder().c_str(),
              static_cast<long long>(info.episodes), static_cast<long long>(info.frames), info.fps,
              static_cast<double>(info.frames) / info.fps);
  for (const datasets::Feature& feature : info.features) {
    if (datasets::IsDefaultFeature(feature.name)) continue;
    std::printf("  %-32s %-8s %s\n", feature.name.c_str(), feature.dtype.c_str(),
                ShapeText(feature).c_str());
  }
  for (size_t task = 0; task < dataset.tasks().texts.size(); ++task) {
    std::printf("  task %zu: %s\n", task, dataset.tasks().texts[task].c_str());
  }
}

int Run(const DatasetOptions& options) {
  if (options.finish) {
    datasets::DatasetWriter writer(options.folder,
                                   datasets::ReadInfo(options.folder + "/meta/info.json"));
    writer.Finish();
  }
  datasets::Dataset dataset(options.folder);
  Print(dataset);
  const std::atomic<bool>& stop = StopOnSignal();
  const datasets::CheckResult result = datasets::Check(
      dataset, {.pictures = !options.quick, .progress = [&](int64_t) { return !stop.load(); }});
  for (const std::string& note : result.notes) std::printf("note: %s\n", note.c_str());
  for (const std::string& problem : result.problems) std::printf("problem: %s\n", problem.c_str());
  if (stop) return StoppedExitCode();
  if (!result.problems.empty()) {
    throw BadInput(options.folder + ": " + std::to_string(result.problems.size()) + " problems" +
                   (result.whole ? "" : ", and more that were not looked for"));
  }
  std::printf("%s\n", options.quick ? "all numbers and files are as they should be"
                                    : "all numbers, files and pictures are as they should be");
  return 0;
}

}  // namespace

Action AddDataset(CLI::App& app) {
  auto options = std::make_shared<DatasetOptions>();
  CLI::App* command =
      app.add_subcommand("dataset", "Show what is in a LeRobotDataset, and check all of it");
  command->add_option("folder", options->folder, "The data set's folder, with meta/ in it")
      ->required()
      ->type_name("DIR");
  command->add_flag("--quick", options->quick, "Decode two pictures of an episode, not all");
  command->add_flag("--finish", options->finish,
                    "First put recorded episodes that wait in .spool into the data set");
  command->footer("\nExit code 2: something is wrong, and the lines above say where.");
  return [options] { return Run(*options); };
}

}  // namespace mjp::app

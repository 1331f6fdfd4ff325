#include "tasks/results/compare.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "apps/commands.h"
#include "base/command_line/terminal.h"
#include "base/error.h"
#include "tasks/results/shard_results.h"

namespace mjp::app {
namespace {

struct Arguments {
  std::string a, b;
  bool json = false;
};

int Run(const Arguments& arguments) {
  const auto a = ReadEpisodesIn(arguments.a, false), b = ReadEpisodesIn(arguments.b, false);
  const Comparison comparison = Compare(a, b);
  const auto differences = ComparedRuns(ReadRunIn(arguments.a), ReadRunIn(arguments.b));
  const std::string text = arguments.json ? ComparisonJson(comparison, differences)
                                          : ComparisonText(comparison, differences);
  const auto verdict = std::min(text.size(), arguments.json ? text.size() : text.find("verdict"));
  const Colour colour = comparison.regression() ? Colour::kRed : Colour::kGreen;
  std::printf("%s%s", text.substr(0, verdict).c_str(),
              Coloured(stdout, colour, text.substr(verdict)).c_str());
  return static_cast<int>(comparison.regression() ? mjp::ExitCode::kRegression
                                                  : mjp::ExitCode::kOk);
}

}  // namespace

Action AddCompare(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("compare", "Compare two evaluations seed by seed; 5 if B is worse");
  command->add_option("A", arguments->a, "Results folder of the first")
      ->required()
      ->type_name("DIR");
  command->add_option("B", arguments->b, "Results folder of the second")
      ->required()
      ->type_name("DIR");
  command->add_flag("--json", arguments->json, "Print JSON");
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app

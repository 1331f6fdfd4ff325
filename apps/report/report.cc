#include <cstdio>
#include <filesystem>
#include <memory>

#include "apps/commands.h"
#include "apps/report/evaluation_files.h"
#include "apps/report/html.h"
#include "apps/report/sections.h"
#include "apps/report/videos.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "base/folders.h"
#include "tasks/evaluation/version.h"

namespace mjp::app {
namespace {

struct Arguments {
  std::vector<std::string> folders;
  std::string out, profile, title;
  double embed = 20;
  bool force = false;
};

struct Part {
  const char *id, *title;
  std::string html;
};

std::string Page(const Arguments& arguments, const std::vector<EvaluationFiles>& all,
                 VideoShelf& shelf) {
  const std::vector<StageTime> profile =
      arguments.profile.empty() ? std::vector<StageTime>() : ReadProfile(arguments.profile);
  const std::vector<Part> parts = {
      {"success", "Success", SuccessSection(all)},
      {"comparison", "Comparison", all.size() > 1 ? ComparisonSection(all) : ""},
      {"episodes", "Episodes", EpisodesSection(all, shelf)},
      {"curves", "Curves", CurvesSection(all)},
      {"disturbances", "Disturbances", DisturbanceSection(all)},
      {"time", "Time", TimeSection(all, profile)},
      {"certificate", "Certificate", CertificateSection(all)},
      {"run", "Run", RunSection(all)}};
  std::vector<NavigationEntry> navigation;
  std::string body = TilesHtml(all);
  for (const Part& part : parts) {
    if (part.html.empty()) continue;
    navigation.push_back({part.id, part.title});
    body += part.html;
  }
  body += "<footer>Written by mjpolicy " + Escaped(ProjectVersion()) + "</footer>";
  const size_t count = all.size();
  const std::string subtitle = "Task " + Escaped(all.front().task) + ", " + std::to_string(count) +
                               (count == 1 ? " evaluation" : " evaluations");
  return PageHtml(arguments.title, subtitle, navigation, body);
}

int Run(const Arguments& arguments) {
  std::error_code none;
  if (!arguments.out.ends_with(".html")) {
    throw Error(ExitCode::kUsage, "--out " + arguments.out + ": a page's name ends with .html");
  }
  if (!arguments.force && std::filesystem::exists(arguments.out, none)) {
    throw Error(ExitCode::kUsage,
                arguments.out + " is there already; give --force to replace it, or another --out");
  }
  const std::vector<EvaluationFiles> all = ReadEvaluations(arguments.folders);
  constexpr double kMegabyte = 1e6;
  VideoShelf shelf(static_cast<uint64_t>(arguments.embed * kMegabyte), arguments.out);
  const std::string page = Page(arguments, all, shelf);
  WriteFileAtomically(arguments.out, page);
  std::printf("report          %s (%.1f MB, %d videos inside, %d linked)\n", arguments.out.c_str(),
              static_cast<double>(page.size()) / kMegabyte, shelf.inside(), shelf.linked());
  return 0;
}

}  // namespace

Action AddReport(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  arguments->title = "Evaluation report";
  CLI::App* command =
      app.add_subcommand("report", "Show one or several evaluations as a page for the browser");
  command
      ->add_option("RESULTS", arguments->folders,
                   "Results folders; the first is compared with the others")
      ->required()
      ->type_name("DIR");
  command->add_option("--out", arguments->out, "The page (.html), one file")
      ->required()
      ->type_name("FILE");
  command->add_option("--title", arguments->title, "Its title")->type_name("WORDS");
  command
      ->add_option("--profile", arguments->profile,
                   "Trace of mjpolicy profile --trace: where the time of a decision goes")
      ->type_name("FILE");
  command
      ->add_option("--embed", arguments->embed,
                   "Videos inside the page, in all; the others are links")
      ->type_name("MB")
      ->check(NumberRange(0, 1000));
  command->add_flag("--force", arguments->force, "Replace the page that is there");
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app

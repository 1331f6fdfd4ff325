#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench/baseline/baseline.h"
#include "apps/bench/device.h"
#include "apps/commands.h"
#include "apps/policy_options.h"
#include "apps/stop_signal.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "tasks/evaluation/version.h"

namespace mjp::app {
namespace {

struct Arguments {
  BenchOptions bench;
  std::string network = "compact", checkpoint;
  std::string json, baseline;
};

// Named alone: these have large networks, or a model, of their own.
constexpr const char* kOnlyByName[] = {"act", "dit", "episode"};

bool Chosen(const std::string& suite, const std::vector<std::string>& chosen) {
  if (chosen.empty()) return std::ranges::find(kOnlyByName, suite) == std::end(kOnlyByName);
  return std::ranges::find(chosen, suite) != chosen.end();
}

// The suites by name, in the order they run.
const std::vector<std::pair<std::string, Suite>>& Suites() {
  static const std::vector<std::pair<std::string, Suite>> suites = {
      {"kernels", BenchKernels}, {"ladder", BenchLadder},     {"pass", BenchPass},
      {"chunk", BenchChunk},     {"parallel", BenchParallel}, {"decision", BenchDecision},
      {"load", BenchLoad},       {"batch", BenchBatch},       {"pictures", BenchPictures},
      {"physics", BenchPhysics}, {"act", BenchAct},           {"dit", BenchDit},
      {"episode", BenchEpisode}};
  return suites;
}

void Print(const BenchRow& row) {
  if (row.n == 0) {
    std::printf("%-9s %-54s %s\n", row.suite.c_str(), row.name.c_str(), row.note.c_str());
    std::fflush(stdout);
    return;
  }
  char rate[64] = "";
  if (!row.unit.empty())
    std::snprintf(rate, sizeof(rate), "%12.0f %s/s", row.Rate(), row.unit.c_str());
  std::printf("%-9s %-54s %-3s %-4s %7d %11.4f %11.4f  %-28s %s\n", row.suite.c_str(),
              row.name.c_str(), row.device.c_str(), row.caches.c_str(), row.n, row.median, row.p99,
              rate, row.note.c_str());
  std::fflush(stdout);
}

nlohmann::ordered_json ToJson(const BenchRow& row) {
  return {{"suite", row.suite},       {"name", row.name},   {"device", row.device},
          {"caches", row.caches},     {"n", row.n},         {"median_ms", row.median},
          {"p99_ms", row.p99},        {"items", row.items}, {"unit", row.unit},
          {"per_second", row.Rate()}, {"note", row.note}};
}

bool IsModel(const std::string& word) { return word.ends_with(".xml"); }

// A task file stands among the suites: that of the suite episode, which needs it.
void TakeModel(Arguments& arguments) {
  for (const std::string& word : arguments.bench.suites) {
    if (IsModel(word)) arguments.bench.model = word;
  }
  std::erase_if(arguments.bench.suites, IsModel);
  const bool wanted = Chosen("episode", arguments.bench.suites);
  if (wanted && (arguments.bench.model.empty() || arguments.checkpoint.empty())) {
    throw mjp::Error(
        mjp::ExitCode::kUsage,
        "bench episode needs a task file and --checkpoint DIR, as in: mjpolicy bench episode "
        "models/cart_pole.xml --checkpoint cart_random");
  }
  if (wanted || arguments.bench.model.empty()) return;
  throw mjp::Error(
      mjp::ExitCode::kUsage,
      "a task file is for the suite episode: mjpolicy bench episode " + arguments.bench.model);
}

int Run(Arguments& arguments) {
  BenchOptions& bench = arguments.bench;
  SayOnSignal(arguments.json.empty() ? "\nstopped; the rows above are all\n"
                                     : "\nstopped; the rows above are all, --json gets none\n");
  TakeModel(arguments);
  if (!arguments.baseline.empty()) CheckBaseline(arguments.baseline);
  bench.network = arguments.checkpoint.empty() ? mjp::NamedNetwork(arguments.network)
                                               : mjp::LoadCheckpoint(arguments.checkpoint);
  bench.checkpoint = arguments.checkpoint;
  const std::string what =
      arguments.checkpoint.empty() ? arguments.network + ", random weights" : arguments.checkpoint;
  const Machine machine = DescribeMachine();
  std::printf("%s\n%s, %u cores\n", VersionText().c_str(), machine.processor.c_str(),
              machine.cores);
  if (!machine.gpu.empty())
    std::printf("%s, driver %s\n", machine.gpu.c_str(), machine.driver.c_str());
  std::printf("%s, batch %d\n\n%-9s %-54s %-8s %7s %11s %11s\n", what.c_str(), bench.policy.batch,
              "suite", "what", "where", "n", "median ms", "p99 ms");
  nlohmann::ordered_json json = {{"version", VersionText()},    {"processor", machine.processor},
                                 {"cores", machine.cores},      {"gpu", machine.gpu},
                                 {"driver", machine.driver},    {"network", what},
                                 {"batch", bench.policy.batch}, {"rows", nlohmann::json::array()}};
  const auto add = [&json](const BenchRows& rows) {
    for (const BenchRow& row : rows) {
      Print(row);
      json["rows"].push_back(ToJson(row));
    }
  };
  for (const auto& [name, suite] : Suites()) {
    if (!Chosen(name, bench.suites)) continue;
    add(suite(bench));
  }
  if (!arguments.baseline.empty()) add(BenchBaseline(arguments.baseline, bench));
  if (!arguments.json.empty()) WriteFileAtomically(arguments.json, JsonText(json, 1) + "\n");
  return 0;
}

}  // namespace

Action AddBench(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("bench", "Measure kernels, network, pictures, physics");
  std::vector<std::string> names;
  for (const auto& [name, suite] : Suites()) names.push_back(name);
  const CLI::Validator known = OneOf(names);
  CLI::Validator suite(known.get_description());
  suite.operation(
      [known](const std::string& word) { return IsModel(word) ? std::string() : known(word); });
  command
      ->add_option("suites", arguments->bench.suites,
                   "Which suites; after episode a task file, MODEL.xml")
      ->type_name("")
      ->check(suite)
      ->default_str("all but act, dit and episode");
  command->add_option("--network", arguments->network, "Which network, with random weights")
      ->type_name("")
      ->check(OneOf(mjp::NamedNetworks()))
      ->capture_default_str();
  command->add_option("--checkpoint", arguments->checkpoint, "Checkpoint directory instead")
      ->type_name("DIR");
  command->add_option("--batch", arguments->bench.policy.batch, "Environments per decision")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--seconds", arguments->bench.seconds, "Of measuring per row")
      ->type_name("SECONDS")
      ->transform(TimeIn(mjp::kSecond, 0.01, 3600))
      ->capture_default_str();
  command
      ->add_option(
          "--decisions", arguments->bench.decisions,
          "How many: of episodes for the suite parallel, instead of --seconds for the suite "
          "decision")
      ->check(CLI::Range(1, 100000))
      ->default_str("16 for the suite parallel");
  AddChoice<RendererKind>(*command, "--renderer",
                          "Who draws the pictures of the suite decision: mujoco one within it",
                          {{"raster", RendererKind::kRaster}, {"mujoco", RendererKind::kMujoco}},
                          arguments->bench.renderer);
  command
      ->add_option("--peer", arguments->baseline,
                   "Then the same networks through another library: torch")
      ->type_name("")
      ->check(OneOf({"torch"}));
  command->add_option("--json", arguments->json, "Also write the rows to this file")
      ->type_name("FILE");
  AddPolicyOptions(*command, arguments->bench.policy);
  return [arguments] { return Run(*arguments); };
}

}  // namespace mjp::app

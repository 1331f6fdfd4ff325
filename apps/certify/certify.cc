#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "apps/certify/certificate.h"
#include "apps/certify/checksums.h"
#include "apps/certify/measures.h"
#include "apps/certify/verify.h"
#include "apps/commands.h"
#include "apps/policy_options.h"
#include "apps/stop_signal.h"
#include "base/error.h"
#include "base/folders.h"
#include "policy/checkpoint/checkpoint.h"

namespace mjp::app {
namespace {

constexpr JsonLimits kLimits = {.bytes = size_t{64} << 20};

struct Arguments {
  CertifyOptions options;
  std::string out = "certificate.json", verify;
  bool episodes_given = false, timed_given = false;
};

// "a/name.json" -> "a/name.md"
std::string PagePath(const std::string& path) {
  const bool json = path.ends_with(".json");
  return (json ? path.substr(0, path.size() - 5) : path) + ".md";
}

// Throws Error, before the work, if the page would replace a file that is none.
void CheckPage(const std::string& page) {
  std::error_code none;
  if (!std::filesystem::exists(page, none)) return CheckWritable(page);
  constexpr size_t kLargestPage = size_t{1} << 20;
  if (!ReadFile(page, kLargestPage).starts_with(kPageTitle)) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     page +
                         ": is no page of a certificate and would be replaced by one; give "
                         "another --out");
  }
}

int Certify(const Arguments& arguments) {
  const std::string page = PagePath(arguments.out);
  CheckPage(page);
  SayOnSignal("\nstopped; no certificate is written\n");
  const Json certificate = MakeCertificate(arguments.options);
  WriteFileAtomically(arguments.out, JsonText(certificate, 1) + "\n");
  const std::filesystem::path checkpoint = std::filesystem::canonical(arguments.options.checkpoint);
  WriteFileAtomically(page, PageOf(certificate, checkpoint.filename()));
  std::printf("certificate     %s\npage            %s\n", arguments.out.c_str(), page.c_str());
  return 0;
}

// Prints `lines`; returns how many differ.
int Print(const std::vector<Comparison>& lines) {
  int different = 0;
  for (const Comparison& line : lines) {
    different += line.verdict == Verdict::kDiffers;
    std::printf("%-17s %s: %s\n", VerdictName(line.verdict), line.what.c_str(), line.text.c_str());
  }
  return different;
}

int SayDifferent(int lines, const char* more) {
  std::printf("%d line%s%s\n", lines, lines == 1 ? " differs" : "s differ", more);
  return static_cast<int>(mjp::ExitCode::kRegression);
}

// The settings to repeat `stored` with.
CertifyOptions RepeatedOptions(const Json& stored, const Arguments& arguments) {
  CertifyOptions options = OptionsOf(stored, arguments.verify);
  options.checkpoint = arguments.options.checkpoint;
  options.model = arguments.options.model;
  options.policy.threads = arguments.options.policy.threads;
  if (arguments.episodes_given)
    options.episodes = std::min(options.episodes, arguments.options.episodes);
  if (arguments.timed_given) options.timed = arguments.options.timed;
  if (stored.contains("model") != !options.model.empty())
    throw mjp::Error(
        mjp::ExitCode::kUsage,
        arguments.verify + (options.model.empty()
                                ? ": was made with a model: name it behind the checkpoint"
                                : ": was made without a model: leave it out"));
  return options;
}

// Throws Error for settings that the model's prefix and warm start do not allow: earlier builds
// left these out, and so chose others.
void CheckHeldActions(const CertifyOptions& options, const std::string& file) {
  const mjp::SamplerOptions& sampler = options.policy.sampler;
  if (!HoldsActions(sampler.kind)) return;
  const HeldActions held = HeldActionsOf(options.model);
  const auto refuse = [&](const char* key, int value, const std::string& attribute) {
    throw mjp::BadInput(file + ": settings/" + key + " is " + std::to_string(value) + ", which " +
                        attribute + " of " + options.model +
                        " does not allow: it was made before prefix and warm_start were kept, or "
                        "of another model: certify the policy anew");
  };
  if (held.prefix && sampler.parallel_window > 0)
    refuse("parallel_window", sampler.parallel_window, "the prefix");
  if (!held.Allows(sampler.steps))
    refuse("steps", sampler.steps, "the warm_start of " + std::to_string(held.warm_start));
}

int Verify(const Arguments& arguments) {
  const Json stored = ReadJson(arguments.verify, kLimits);
  SayOnSignal("\nstopped; the certificate is not verified\n");
  const CertifyOptions options = RepeatedOptions(stored, arguments);
  const std::vector<Comparison> checksums = CompareChecksums(stored);
  const int edited = Print(checksums);
  const bool settings = std::ranges::any_of(checksums, [](const Comparison& line) {
    return line.what.starts_with("settings") || line.what == "format";
  });
  if (settings) return SayDifferent(edited, "; nothing was repeated, as the settings were edited");
  CheckHeldActions(options, arguments.verify);
  std::vector<Comparison> lines;
  try {
    lines = CompareCertificates(stored, MakeCertificate(options));
  } catch (const Json::exception& error) {
    throw mjp::BadInput(arguments.verify + ": is not a certificate: " + error.what());
  } catch (const mjp::Error& error) {
    if (error.code() != mjp::ExitCode::kEnvironment) throw;
    const int different = edited + Print(CompareWithoutRepeating(
                                       stored, mjp::LoadCheckpoint(options.checkpoint)->files));
    if (different > 0) return SayDifferent(different, "; all else could not be repeated here");
    throw;
  }
  const int different = edited + Print(lines);
  if (different > 0) return SayDifferent(different, "");
  std::printf("%s\n", TextWhereNothingDiffers(stored, lines).c_str());
  return 0;
}

}  // namespace

Action AddCertify(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CertifyOptions& options = arguments->options;
  CLI::App* command =
      app.add_subcommand("certify", "Write down what a policy does here, or verify what was");
  command->add_option("checkpoint", options.checkpoint, "Checkpoint directory")
      ->required()
      ->type_name("DIR");
  command
      ->add_option(
          "model", options.model,
          "MJCF file with the plugin, run for ten seconds; of a task file the episodes too")
      ->type_name("MODEL.xml");
  CLI::Option* out =
      command->add_option("--out", arguments->out, "Certificate; a page (.md) stands next to it")
          ->type_name("FILE")
          ->capture_default_str();
  CLI::Option* episodes = command
                              ->add_option("--episodes", options.episodes,
                                           "Episodes of the model's task, else of Push-T")
                              ->check(CLI::Range(1, 1000000))
                              ->capture_default_str();
  CLI::Option* timed =
      command->add_option("--timed", options.timed, "Decisions whose latency is taken")
          ->check(CLI::Range(1, 10000000))
          ->capture_default_str();
  const std::vector<CLI::Option*> of_decisions = AddPolicyOptions(*command, options.policy);
  CLI::Option* verify =
      command
          ->add_option(
              "--verify", arguments->verify,
              "Repeat this certificate with its settings and compare, the first --episodes")
          ->type_name("FILE")
          ->excludes(out);
  for (CLI::Option* option : of_decisions) verify->excludes(option);  // the certificate says them
  return [arguments, command, episodes, timed] {
    arguments->options.hold_noise_given = command->count("--hold-noise") > 0;
    arguments->episodes_given = episodes->count() > 0;
    arguments->timed_given = timed->count() > 0;
    return arguments->verify.empty() ? Certify(*arguments) : Verify(*arguments);
  };
}

}  // namespace mjp::app

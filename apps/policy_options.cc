#include "apps/policy_options.h"

#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "kernels/error.h"

namespace pusht {
namespace {

// "W" or "W,tolerance"
void ParseParallel(const std::string& text, dp::SamplerOptions& sampler) {
  const auto refuse = [&text] {
    throw CLI::ValidationError("--parallel",
                               "'" + text + "' is not W or W,tolerance (e.g. 16,0.01)");
  };
  char* end = nullptr;
  const long window = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || window < 1 || window > 1000) refuse();
  sampler.parallel_window = static_cast<int>(window);
  if (*end == '\0') return;
  if (*end != ',') refuse();
  const char* begin = end + 1;
  const float tolerance = std::strtof(begin, &end);
  if (end == begin || *end != '\0' || !(tolerance > 0 && tolerance < 10)) refuse();
  sampler.parallel_tolerance = tolerance;
}

}  // namespace

void AddPolicyOptions(CLI::App& command, dp::PolicyOptions& options) {
  using dp::Backend, dp::Precision, dp::SamplerKind;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  command.add_option("--backend", options.backend, "Where the network runs: auto, cpu or cuda")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Backend>{
          {"auto", Backend::kAuto}, {"cpu", Backend::kCpu}, {"cuda", Backend::kCuda}}));
  command
      .add_option("--precision", options.precision,
                  "Number format of the products: auto, fp32, tf32, fp16 or bf16 (GPU)")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, Precision>{{"auto", Precision::kAuto},
                                                                   {"fp32", Precision::kFp32},
                                                                   {"tf32", Precision::kTf32},
                                                                   {"fp16", Precision::kFp16},
                                                                   {"bf16", Precision::kBf16}}));
  command.add_option("--sampler", options.sampler.kind, "ddpm or ddim; default as the checkpoint")
      ->transform(CLI::CheckedTransformer(std::map<std::string, SamplerKind>{
          {"ddpm", SamplerKind::kDdpm}, {"ddim", SamplerKind::kDdim}}));
  command
      .add_option("--steps", options.sampler.steps, "Denoising steps; default as the checkpoint")
      ->check(CLI::Range(1, 1000));
  auto* parallel = command.add_option_function<std::string>(
      "--parallel", [&options](const std::string& text) { ParseParallel(text, options.sampler); },
      "Time-parallel denoising: window of steps, and tolerance");
  command
      .add_flag_callback(
          "--sequential", [&options] { options.sampler.parallel_window = 0; },
          "Denoise step by step")
      ->excludes(parallel);
  command.add_option("--threads", options.threads, "CPU threads; results do not depend on it")
      ->check(CLI::Range(1, 1024));
}

void CompletePolicyOptions(const CLI::App& command, const dp::PolicyConfig& config,
                           dp::PolicyOptions& options) {
  if (command.count("--sampler") == 0) options.sampler.kind = config.scheduler.kind;
}

}  // namespace pusht

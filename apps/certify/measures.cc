#include "apps/certify/measures.h"

#include <gnu/libc-version.h>
#include <mujoco/mujoco.h>
#include <sys/resource.h>

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <thread>

#include "apps/bench/observations.h"
#include "base/error.h"
#include "base/file.h"
#include "base/program/own_program.h"
#include "base/sha256.h"
#include "kernels/cpu/isa.h"
#include "plugin/model/config.h"
#include "plugin/register.h"
#include "policy/option_names.h"
#include "tasks/evaluation/hosted_failure.h"
#include "tasks/evaluation/plugin_attributes.h"
#include "tasks/evaluation/version.h"
#include "tasks/physics/model.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/results/episode.h"
#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

constexpr int kDecisions = 32;

// The rest of the first line of `file` that begins with `word`, after a colon; "" if there is none.
std::string LineOf(const char* file, const std::string& word) {
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with(word)) continue;
    const size_t colon = line.find(": ");
    return colon == std::string::npos ? line : line.substr(colon + 2);
  }
  return "";
}

mjp::PolicyOptions WithBatch(mjp::PolicyOptions options, int batch) {
  options.batch = batch;
  options.scene_drawer = &mjp::FlatSceneDrawer();
  return options;
}

Json Percentiles(const std::vector<double>& milliseconds) {
  return {{"p50", Quantile(milliseconds, 0.5)},
          {"p99", Quantile(milliseconds, 0.99)},
          {"p99.9", Quantile(milliseconds, 0.999)},
          {"max", Quantile(milliseconds, 1)}};
}

// Work that always takes the same instructions, and that no compiler leaves out.
double FixedWork(int64_t rounds) {
  const volatile double start = 1;
  double x = start;
  for (int64_t i = 0; i < rounds; ++i) x = x * 0.999 + 0.001;
  return x;
}

}  // namespace

std::string HexOf(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, hash);
  return text;
}

Json EngineOf() {
  constexpr uint64_t kLargestProgram = uint64_t{1} << 32;
  return {{"mjpolicy", ProjectVersion()},
          {"program_sha256", mjp::Sha256(mjp::ReadFile(mjp::OwnProgram(), kLargestProgram))},
          {"mujoco", mj_versionString()},
          {"compiler", __VERSION__}};
}

std::unique_ptr<mjp::Policy> PolicyOfOne(const SharedCheckpoint& checkpoint,
                                         const mjp::PolicyOptions& options) {
  return mjp::Policy::Create(checkpoint, WithBatch(options, 1));
}

Json MachineOf(const mjp::Policy& policy) {
  const std::string name = LineOf("/proc/cpuinfo", "model name");
  return {{"processor", name.empty() ? "not named by the system" : name},
          {"kind", mjp::ResultProcessor()},
          {"threads", std::thread::hardware_concurrency()},
          {"c_library", std::string("glibc ") + gnu_get_libc_version()},
          {"runs_on", policy.Description()},
          {"driver", policy.device_ordinal() < 0
                         ? "none"
                         : LineOf("/proc/driver/nvidia/version", "NVRM version")}};
}

Json DecisionsOf(const SharedCheckpoint& checkpoint, const mjp::PolicyOptions& options) {
  const auto policy = mjp::Policy::Create(checkpoint, WithBatch(options, kDecisions));
  BenchObservations observations(*checkpoint, kDecisions);
  mjp::PolicyOutput output;
  policy->Infer(observations.Next(), output);
  const size_t size = output.actions.size() / kDecisions * sizeof(float);
  const auto* bytes = reinterpret_cast<const uint8_t*>(output.actions.data());
  Json hashes = Json::array();
  for (int i = 0; i < kDecisions; ++i) hashes.push_back(mjp::Sha256({bytes + i * size, size}));
  return hashes;
}

Json LatencyOf(const mjp::Checkpoint& checkpoint, mjp::Policy& policy, int timed) {
  constexpr int kWarmUp = 3;
  BenchObservations observations(checkpoint, 1);
  mjp::PolicyOutput output;
  for (int i = 0; i < kWarmUp; ++i) policy.Infer(observations.Next(), output);
  const double begin = mjp::Now();
  policy.Infer(observations.Next(), output);
  const double length = mjp::Now() - begin;
  constexpr int64_t kTrial = 100000;
  volatile double sink = FixedWork(kTrial);
  const double trial = mjp::Now();
  sink = FixedWork(kTrial);
  const auto rounds = static_cast<int64_t>(kTrial * length / (mjp::Now() - trial)) + 1;
  std::vector<double> decisions, work;
  for (int i = 0; i < timed; ++i) {
    const double first = mjp::Now();
    policy.Infer(observations.Next(), output);
    const double second = mjp::Now();
    sink = FixedWork(rounds);
    const double third = mjp::Now();
    decisions.push_back(1e3 * (second - first));
    work.push_back(1e3 * (third - second));
  }
  static_cast<void>(sink);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {{"decisions", timed},
          {"milliseconds", Percentiles(decisions)},
          {"fixed_work_milliseconds", Percentiles(work)},
          {"peak_memory_mib", static_cast<double>(usage.ru_maxrss) / 1024}};
}

Json RefusalsOf(const mjp::Checkpoint& checkpoint, mjp::Policy& policy) {
  BenchObservations observations(checkpoint, 1);
  mjp::PolicyOutput output;
  Json list = Json::array();
  const auto ask = [&](const std::string& what, const mjp::PolicyInput& input) {
    try {
      policy.Infer(input, output);
      list.push_back({{"asked", what}, {"answer", "it was not refused"}});
    } catch (const mjp::Error& error) {
      list.push_back({{"asked", what}, {"answer", error.what()}});
    }
  };
  mjp::PolicyInput input = observations.Next();
  std::vector<float> state(input.state.begin(), input.state.end());
  if (!state.empty()) {
    state[0] = std::numeric_limits<float>::quiet_NaN();
    input.state = state;
    ask("a state that is not a number", input);
    input.state = std::span<const float>(state).subspan(1);
    ask("a state with one number too few", input);
  }
  input = observations.Next();
  input.count = 2;
  ask("two robots where there is room for one", input);
  return list;
}

Json ModelOf(const std::string& path, const std::string& checkpoint,
             const mjp::PolicyOptions& policy) {
  constexpr double kSeconds = 10;
  if (!mjp::RegisterPlugin()) throw mjp::EnvironmentError("the engine refused the plugin");
  // the policy and the settings of the certificate, whichever the model names
  std::map<std::string, std::string> attributes = ResolvedAttributes(policy);
  // no settings of a certificate: the model's own stand, which those of a task file are already;
  // other samplers refuse them
  if (HoldsActions(policy.sampler.kind)) {
    for (const char* name : {"prefix", "warm_start"}) attributes.erase(name);
  }
  attributes["checkpoint"] = std::filesystem::absolute(checkpoint).string();
  mjp::SetAttributesInstead(attributes);
  const ModelPtr model = LoadModel(path);
  model->opt.disableflags |= mjDSBL_AUTORESET;  // whose time would never end
  const DataPtr data = MakeData(model.get());
  StateHash hash;
  std::string failure;
  while (data->time < kSeconds) {
    mj_step(model.get(), data.get());
    failure = HostedFailure(model.get(), data.get());
    if (!failure.empty()) break;
    for (int i = 0; i < model->nq; ++i) hash.Add(data->qpos[i]);
    for (int i = 0; i < model->nu; ++i) hash.Add(data->ctrl[i]);
  }
  mjp::SetAttributesInstead({});
  int warnings = 0;
  for (const mjWarningStat& warning : data->warning) warnings += warning.number;
  Json measured = {{"sha256", mjp::Sha256(mjp::ReadFile(path, uint64_t{1} << 30))},
                   {"seconds", failure.empty() ? kSeconds : data->time},
                   {"hash", HexOf(hash.value())},
                   {"warnings", warnings}};
  if (!failure.empty()) measured["failure"] = failure;
  return measured;
}

}  // namespace mjp::app

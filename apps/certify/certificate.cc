#include "apps/certify/certificate.h"

#include <algorithm>

#include "apps/certify/checksums.h"
#include "apps/certify/measures.h"
#include "base/key_reader.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/option_names.h"

namespace mjp::app {
namespace {

constexpr int kFormat = 2;  // of the file; 1 had no checksums
constexpr int kMostBatch = 64;

// Gives `options` what `policy`, of one robot, resolved: the settings that all parts run with,
// whatever their batch would choose.
void TakeResolved(const mjp::PolicyOptions& resolved, mjp::PolicyOptions& options) {
  const int hold_noise = options.sampler.hold_noise;  // belongs to the actions of each decision
  options.backend = resolved.backend;
  options.precision = resolved.precision;
  options.sampler = resolved.sampler;
  options.sampler.hold_noise = hold_noise;
}

Json SettingsOf(const CertifyOptions& options) {
  const mjp::SamplerOptions& sampler = options.policy.sampler;
  return {{"backend", mjp::BackendName(options.policy.backend)},
          {"precision", mjp::PrecisionName(options.policy.precision)},
          {"sampler",
           sampler.kind == mjp::SamplerKind::kAuto ? "none" : mjp::SamplerName(sampler.kind)},
          {"steps", sampler.steps},
          {"parallel_window", sampler.parallel_window},
          {"parallel_tolerance", ShortestDouble(sampler.parallel_tolerance)},
          {"temperature", ShortestDouble(sampler.temperature.value_or(1.0f))},
          {"hold_noise", sampler.hold_noise},
          {"instruction", options.policy.instruction},
          {"episodes", options.episodes},
          {"batch", options.batch},
          {"seed", options.seed},
          {"timed", options.timed}};
}

Json NotEstablished() {
  return {"that the policy is safe, or good at anything but the task above",
          "that it does the same on a robot, whose camera and contacts are not the simulation's",
          "that its success is the same under light, latency or noise that were not tried",
          "the worst latency: it is the worst of the decisions that were timed, on this machine",
          "that weights are unchanged since, unless the hashes above are compared again",
          "who made it: this file is not signed, and its checksums tell edits by accident alone"};
}

}  // namespace

Json MakeCertificate(CertifyOptions options) {
  if (options.batch == 0) options.batch = std::min(options.episodes, kMostBatch);
  const SharedCheckpoint checkpoint = mjp::LoadCheckpoint(options.checkpoint);
  TakeTask(*checkpoint, options);
  const auto policy = PolicyOfOne(checkpoint, options.policy);
  TakeResolved(policy->options(), options.policy);
  Json certificate = {{"format", kFormat},
                      {"engine", EngineOf()},
                      {"checkpoint", checkpoint->files},
                      {"settings", SettingsOf(options)},
                      {"machine", MachineOf(*policy)}};
  if (!options.model.empty())
    certificate["model"] = ModelOf(options.model, options.checkpoint, options.policy);
  certificate["decisions"] = DecisionsOf(checkpoint, options.policy);
  certificate["error"] = ErrorsOf(checkpoint, options.policy);
  certificate["latency"] = LatencyOf(*checkpoint, *policy, options.timed);
  certificate["refused"] = RefusalsOf(*checkpoint, *policy);
  certificate["episodes"] = EpisodesOf(checkpoint, options);
  certificate["not_established"] = NotEstablished();
  AddChecksums(certificate);
  return certificate;
}

CertifyOptions OptionsOf(const Json& certificate, const std::string& file) {
  KeyReader whole(certificate, file);
  if (whole.Int("format", 1, kFormat) < kFormat)
    throw whole.Bad("format", "is 1, without checksums: certify the policy anew");
  for (const char* key :
       {"engine", "checkpoint", "machine", "error", "latency", "episodes", "fields"})
    if (!whole.Required(key).is_object()) throw whole.Bad(key, "is not an object");
  for (const char* key : {"decisions", "refused", "not_established"})
    if (!whole.Required(key).is_array()) throw whole.Bad(key, "is not a list");
  const Json& settings = whole.Required("settings");
  KeyReader reader(settings, file + ": settings");
  CertifyOptions options;
  options.policy.backend = mjp::ParseBackend("backend", reader.Text("backend"));
  options.policy.precision = mjp::ParsePrecision("precision", reader.Text("precision"));
  mjp::SamplerOptions& sampler = options.policy.sampler;
  const std::string kind = reader.Text("sampler");
  if (kind != "none") sampler.kind = mjp::ParseSampler("sampler", kind);
  sampler.steps = reader.Int("steps", 0, 1000);
  sampler.parallel_window = reader.Int("parallel_window", mjp::kAutoWindow, 1000);
  sampler.parallel_tolerance =
      static_cast<float>(reader.Number("parallel_tolerance", 0, mjp::kMostParallelTolerance));
  // absent in files from before it was an option
  const double temperature = reader.Number("temperature", 0, mjp::kMostTemperature, 1.0);
  if (kind != "none") sampler.temperature = static_cast<float>(temperature);
  sampler.hold_noise = reader.Int("hold_noise", 0, mjp::kMostHeldDecisions);
  options.policy.instruction = reader.Text("instruction");
  options.hold_noise_given = true;
  options.episodes = reader.Int("episodes", 1, 1000000);
  // absent in files that also leave the window of the episodes unsaid (verify.cc)
  options.batch = reader.Int("batch", 1, kMostBatch, std::min(options.episodes, kMostBatch));
  options.seed = reader.Uint32("seed");
  options.timed = reader.Int("timed", 1, 10000000);
  reader.RejectRest();
  return options;
}

}  // namespace mjp::app

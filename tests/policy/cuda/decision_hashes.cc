// Prints one line per form of the GPU backend: network, format, environments, sampler, the hash of
// the actions that it gives for fixed observations. Two builds have the same bits where `diff` of
// their outputs is empty. Code for 9.0a on an H100 or H200 gives decision_hashes_90a.txt.
//   policy_cuda_decision_hashes [CHECKPOINT]      of all networks, and of a checkpoint
//   policy_cuda_decision_hashes NETWORK           of one network of NamedNetworks

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/option_names.h"
#include "policy/policy.h"
#include "policy/unet/unet_model.h"

namespace {

struct Run {
  int batch;
  mjp::SamplerKind kind;
  int steps, window;
};

// Observations of `batch` environments that differ from each other; pictures or a condition.
std::string Hash(const std::shared_ptr<const mjp::Checkpoint>& network, mjp::Precision precision,
                 const Run& run, bool pictures) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCuda;
  options.precision = precision;
  options.batch = run.batch;
  options.self_check = false;
  options.sampler.kind = run.kind;
  options.sampler.steps = run.steps;
  options.sampler.parallel_window = run.window;
  options.sampler.temperature = 1.0f;  // whatever the checkpoint says
  const auto policy = mjp::Policy::Create(network, options);
  const mjp::UnetPolicyConfig& config = mjp::UnetOf(*network).config;
  std::vector<uint8_t> frames;
  std::vector<float> state, environment, cond;
  std::vector<mjp::NoiseKey> keys;
  for (int i = 0; i < run.batch; ++i) {
    keys.push_back({static_cast<uint64_t>(i), 0});
    for (int t = 0; t < config.n_obs_steps; ++t) {
      for (const auto& camera : config.cameras)
        for (int j = 0; pictures && j < camera.height * camera.width * 3; ++j)
          frames.push_back(static_cast<uint8_t>((j * 7 + j / 288 * (3 + t) + i * 31) % 256));
      state.insert(state.end(), config.state_dim, 100.0f + static_cast<float>(i));
      environment.insert(environment.end(), config.environment_dim, static_cast<float>(i));
    }
  }
  for (int i = 0; i < run.batch * config.CondDim(); ++i)
    cond.push_back(static_cast<float>(i % 17) / 8 - 1);
  std::vector<uint8_t> bytes;
  for (uint32_t decision = 0; decision < 2; ++decision) {
    for (mjp::NoiseKey& key : keys) key.decision = decision * 1000;
    mjp::PolicyInput input;
    input.count = run.batch;
    input.frames = frames;
    input.state = state;
    input.environment = environment;
    input.keys = keys;
    if (!pictures) input.global_cond = cond;
    mjp::PolicyOutput output;
    policy->Infer(input, output);
    const auto* begin = reinterpret_cast<const uint8_t*>(output.actions.data());
    bytes.insert(bytes.end(), begin, begin + output.actions.size() * sizeof(float));
  }
  return mjp::Sha256(bytes);
}

void Print(const std::string& name, const std::shared_ptr<const mjp::Checkpoint>& network,
           bool pictures) {
  using enum mjp::SamplerKind;
  const Run runs[] = {{1, kDdim, 10, 0},   {1, kDdpm, 100, 16}, {1, kDdpm, 100, 8},
                      {1, kDdpm, 100, 32}, {1, kDdpm, 100, -1}, {2, kDdpm, 20, 16},
                      {3, kDdim, 10, 0},   {8, kDdim, 10, 0},   {16, kDdim, 10, 0},
                      {24, kDdim, 10, 0},  {32, kDdim, 10, 0},  {48, kDdim, 10, 0},
                      {64, kDdpm, 20, -1}, {128, kDdim, 10, 0}, {512, kDdim, 4, 0}};
  for (const char* word : {"fp16", "bf16", "tf32", "fp32"}) {
    const mjp::Precision precision = mjp::ParsePrecision("", word);
    for (const Run& run : runs) {
      std::string text;
      try {
        text = Hash(network, precision, run, pictures);
      } catch (const std::exception& error) {
        text = error.what();
      }
      std::printf("%s %s %s batch %d %s %d window %d: %s\n", name.c_str(),
                  pictures ? "pictures" : "condition", word, run.batch, mjp::SamplerName(run.kind),
                  run.steps, run.window, text.c_str());
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> names = mjp::NamedNetworks();
  const std::string given = argc > 1 ? argv[1] : "";
  const bool one = std::find(names.begin(), names.end(), given) != names.end();
  for (const std::string& name : names) {
    if (one && name != given) continue;
    const auto network = mjp::NamedNetwork(name);
    Print(name, network, false);
    if (name != "lerobot") Print(name, network, true);
  }
  if (!given.empty() && !one) {
    const auto shipped = mjp::LoadCheckpoint(given);
    Print("checkpoint", shipped, false);
    Print("checkpoint", shipped, true);
  }
}

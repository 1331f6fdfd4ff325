// Prints the bits of the CPU backend: a line for each case, its name and the SHA-256 of its result.
// Two processors, compilers or builds give the same results where `diff` of their outputs is empty;
// bits.txt beside this file is what all of them print.
//   policy_bits [CASE...]                         cases whose name begins with one of these words

#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "kernels/cpu/group_norm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/mish.h"
#include "kernels/cpu/transformer/activate.h"
#include "kernels/cpu/transformer/layer_norm.h"
#include "kernels/cpu/transformer/softmax.h"
#include "kernels/shared/philox.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/policy.h"
#include "policy/scheduler.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/guarded_features.h"

namespace {

using mjp_test::RandomFloats;
using Floats = std::vector<float>;

std::string Hash(const Floats& values) {
  return mjp::Sha256(
      {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)});
}

Floats Scaled(size_t size, uint32_t seed, float scale) {
  Floats values = RandomFloats(size, seed);
  for (float& v : values) v *= scale;
  return values;
}

// Sizes that no register divides are among these.
Floats Activations() {
  Floats all;
  for (int kind = 0; kind <= static_cast<int>(mjp::TokenActivation::kSilu); ++kind) {
    Floats x = Scaled(4003, 1 + kind, 30);
    const Floats special = {0, -0.0f, 1e-38f, -1e-38f, 100, -100, 3e38f, -3e38f};
    x.insert(x.end(), special.begin(), special.end());
    mjp::cpu::Activate(static_cast<mjp::TokenActivation>(kind), x.data(),
                       static_cast<int64_t>(x.size()), x.data());
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

Floats MishValues() {
  Floats x = Scaled(100003, 1, 90);
  mjp::cpu::Mish(x.data(), static_cast<int64_t>(x.size()), x.data());
  return x;
}

Floats Softmaxes() {
  Floats all;
  for (const int size : {1, 3, 15, 16, 17, 40, 63, 100, 197}) {
    Floats x = Scaled(size, size, 6);
    mjp::cpu::Softmax(x.data(), size, 0.7f);
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

Floats LayerNorms() {
  Floats all;
  for (const int width : {1, 5, 16, 24, 36, 70, 100, 512, 770}) {
    Floats x = Scaled(5 * width, width, 3), y(x.size());
    const Floats weight = RandomFloats(width, 2), bias = RandomFloats(width, 3);
    mjp::cpu::LayerNorm({.x = x.data(),
                         .x_pitch = width,
                         .y = y.data(),
                         .y_pitch = width,
                         .width = width,
                         .weight = weight.data(),
                         .bias = bias.data()},
                        0, 5);
    mjp::cpu::AddResidual({.y = y.data(),
                           .y_pitch = width,
                           .x = x.data(),
                           .x_pitch = width,
                           .width = width,
                           .gate = weight.data()},
                          0, 5);
    all.insert(all.end(), y.begin(), y.end());
  }
  return all;
}

Floats GroupNorms() {
  Floats all;
  for (const int channels : {8, 24, 40, 72, 160, 200, 264}) {
    const int groups = 8;
    Floats data = Scaled(size_t{2} * 11 * channels, channels, 4);
    const Floats weight = RandomFloats(channels, 2), bias = RandomFloats(channels, 3);
    mjp::cpu::GroupNormArgs args;
    args.y = {data.data(), 2, 1, 11, channels, channels, 0, 0};
    args.groups = groups;
    args.weight = weight.data();
    args.bias = bias.data();
    args.activation = mjp::Activation::kMish;
    // divided at groups, as threads may
    const int size = channels / groups;
    mjp::cpu::Normalize(args, {0, 2, 0, 5 * size});
    mjp::cpu::Normalize(args, {0, 2, 5 * size, channels});
    all.insert(all.end(), data.begin(), data.end());
  }
  return all;
}

// Each number that the noise takes a logarithm, a sine or a cosine of, as one number: these
// functions are the C library's.
Floats NoiseFunctions() {
  uint64_t hash = 14695981039346656037ull;
  for (uint32_t i = 0; i < 1u << 24; ++i) {
    const float angle = static_cast<float>(i) * 0x1p-24f * 6.2831853f;
    for (const float value : {std::sqrt(-2.0f * std::log(static_cast<float>(i + 1) * 0x1p-24f)),
                              std::cos(angle), std::sin(angle)}) {
      hash = (hash ^ std::bit_cast<uint32_t>(value)) * 1099511628211ull;
    }
  }
  return {std::bit_cast<float>(static_cast<uint32_t>(hash)),
          std::bit_cast<float>(static_cast<uint32_t>(hash >> 32))};
}

Floats Noise() {
  Floats all(size_t{4} << 14);
  for (uint32_t i = 0; i < all.size() / 4; ++i) mjp::NormalQuad(7, i, 42, i, &all[4 * i]);
  return all;
}

Floats Schedules() {
  Floats all;
  for (const int steps : {5, 10, 20, 50, 100, 500, 1000}) {
    for (const auto schedule : {mjp::BetaSchedule::kLinear, mjp::BetaSchedule::kSquaredCosCapV2}) {
      mjp::SchedulerConfig config;
      config.train_steps = steps;
      config.beta_schedule = schedule;
      const Floats betas = mjp::Betas(config), products = mjp::AlphasCumprod(config);
      all.insert(all.end(), betas.begin(), betas.end());
      all.insert(all.end(), products.begin(), products.end());
    }
  }
  return all;
}

// One or more decisions of two environments that differ.
Floats Decisions(const std::shared_ptr<const mjp::Checkpoint>& checkpoint,
                 mjp::SamplerOptions sampler, const std::string& instruction = "") {
  constexpr int kCount = 2;
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.batch = kCount;
  options.threads = 2;
  options.sampler = sampler;
  options.instruction = instruction;
  const auto policy = mjp::Policy::Create(checkpoint, options);
  const mjp::PolicyConfig& config = checkpoint->config;
  std::vector<uint8_t> frames;
  Floats state, environment;
  std::vector<mjp::NoiseKey> keys;
  for (int n = 0; n < kCount; ++n) {
    keys.push_back({100000u + n, 3u * n});
    for (int t = 0; t < config.n_obs_steps; ++t) {
      for (const mjp::CameraFeature& camera : config.cameras) {
        for (int j = 0; j < camera.height * camera.width * 3; ++j)
          frames.push_back(static_cast<uint8_t>((j * 7 + j / 288 * (3 + t) + n * 31) % 256));
      }
      for (int i = 0; i < config.state_dim; ++i) state.push_back(100.0f + 31 * n + 7 * t + i);
      for (int i = 0; i < config.environment_dim; ++i) environment.push_back(40.0f + 9 * n + i);
    }
  }
  mjp::PolicyInput input;
  input.count = kCount;
  input.frames = frames;
  input.state = state;
  input.environment = environment;
  input.keys = keys;
  mjp::PolicyOutput output;
  policy->Infer(input, output);
  return output.actions;
}

mjp::SamplerOptions Sampler(mjp::SamplerKind kind, int steps, int window = 0) {
  mjp::SamplerOptions sampler;
  sampler.kind = kind;
  sampler.steps = steps;
  sampler.parallel_window = window;
  return sampler;
}

Floats Shipped(mjp::SamplerOptions sampler) {
  sampler.temperature = 1.0f;  // whatever the checkpoint says
  return Decisions(mjp::LoadCheckpoint(MJPOLICY_SOURCE_DIR "/assets/pusht_image"), sampler);
}

Floats Dit(bool rope) {
  const mjp_test::TempDir dir;
  return Decisions(
      mjp::LoadCheckpoint(mjp_test::WriteSmallDit(dir, "policy", mjp_test::SmallDitConfig(rope))),
      {}, "ab c");
}

Floats Act(bool pre_norm, mjp::TokenActivation activation) {
  mjp::ActPolicyConfig config = mjp_test::SmallActConfig();
  config.pre_norm = pre_norm;
  config.activation = activation;
  return Decisions(mjp_test::ActCheckpoint(config), {});
}

// The shape of LeRobot's U-Net, narrow enough for an emulated processor.
Floats OddNetwork() {
  mjp::UnetPolicyConfig config = mjp::NamedConfig("lerobot-128");
  config.unet.down_dims = {40, 72};
  config.unet.step_embed_dim = 48;
  mjp::NormalizerStats stats;
  stats.cameras = {{mjp::Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
  stats.state = stats.action = {mjp::Normalization::kMinMax, {0, 0}, {512, 512}};
  return Decisions(mjp::RandomCheckpoint(config, stats, 7), Sampler(mjp::SamplerKind::kDdim, 3));
}

const std::map<std::string, std::function<Floats()>>& Cases() {
  using enum mjp::SamplerKind;
  static const std::map<std::string, std::function<Floats()>> cases = {
      {"kernel/activations", Activations},
      {"kernel/group_norm", GroupNorms},
      {"kernel/layer_norm", LayerNorms},
      {"kernel/mish", MishValues},
      {"kernel/softmax", Softmaxes},
      {"noise/functions", NoiseFunctions},
      {"noise/normals", Noise},
      {"schedule/betas", Schedules},
      {"decision/act", [] { return Act(false, mjp::TokenActivation::kRelu); }},
      {"decision/act_pre_norm_gelu", [] { return Act(true, mjp::TokenActivation::kGeluErf); }},
      {"decision/dit", [] { return Dit(false); }},
      {"decision/dit_rope", [] { return Dit(true); }},
      {"decision/odd_channels", OddNetwork},
      {"decision/shipped_ddim_4", [] { return Shipped(Sampler(kDdim, 4)); }},
      {"decision/shipped_ddpm_100", [] { return Shipped(Sampler(kDdpm, 100)); }},
      {"decision/shipped_parallel", [] { return Shipped(Sampler(kDdpm, 100, 16)); }},
      {"decision/tiny_state",
       [] { return Decisions(mjp_test::TinyStateCheckpoint(), Sampler(kDdim, 5)); }},
  };
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto& [name, values] : Cases()) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || name.starts_with(argv[i]);
    if (!wanted) continue;
    std::printf("%-28s %s\n", name.c_str(), Hash(values()).c_str());
    std::fflush(stdout);
  }
}

#include "policy/c_api.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/option_names.h"
#include "policy/policy.h"

struct mjp_policy {
  std::unique_ptr<mjp::Policy> policy;
  std::vector<mjp::NoiseKey> keys;
  mjp::PolicyOutput output;
};

namespace {

thread_local std::string last_error;

// Runs `action`; what it throws becomes the last error and `failed` the result.
template <typename Result, typename Action>
Result Guard(Result failed, Action action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "unknown failure";
  }
  return failed;
}

void Require(bool condition, const char* text) {
  if (!condition) throw mjp::Error(mjp::ExitCode::kUsage, text);
}

mjp::PolicyOptions Convert(const mjp_options& given, const mjp::PolicyConfig& config) {
  Require(given.steps >= 0 && given.batch >= 0 && given.threads >= 0,
          "mjp_load: steps, batch and threads must not be negative");
  mjp::PolicyOptions options;
  if (given.backend) options.backend = mjp::ParseBackend("backend", given.backend);
  if (given.precision) options.precision = mjp::ParsePrecision("precision", given.precision);
  options.sampler.kind =
      given.sampler ? mjp::ParseSampler("sampler", given.sampler) : config.scheduler.kind;
  options.sampler.steps = given.steps;
  options.batch = std::max(1, given.batch);
  options.threads = std::max(1, given.threads);
  return options;
}

size_t PictureBytes(const mjp::PolicyConfig& config) {
  size_t bytes = 0;
  for (const mjp::CameraFeature& camera : config.cameras) {
    bytes += size_t{3} * camera.height * camera.width;
  }
  return bytes;
}

// `size` elements at `data`, or none where there is no pointer: what is missing is found by Infer.
template <typename T>
std::span<const T> View(const T* data, size_t size) {
  return data ? std::span<const T>(data, size) : std::span<const T>();
}

}  // namespace

mjp_policy* mjp_load(const char* directory, const mjp_options* options) {
  return Guard<mjp_policy*>(nullptr, [&] {
    Require(directory != nullptr, "mjp_load: directory is NULL");
    const auto checkpoint = mjp::LoadCheckpoint(directory);
    auto object = std::make_unique<mjp_policy>();
    object->policy = mjp::Policy::Create(
        checkpoint, Convert(options ? *options : mjp_options{}, checkpoint->config));
    return object.release();
  });
}

int mjp_describe(const mjp_policy* policy, mjp_shape* shape) {
  return Guard(-1, [&] {
    Require(policy != nullptr && shape != nullptr, "mjp_describe: an argument is NULL");
    const mjp::PolicyConfig& config = policy->policy->config();
    *shape = {config.n_obs_steps,     config.state_dim,
              config.environment_dim, static_cast<int>(config.cameras.size()),
              PictureBytes(config),   config.horizon,
              config.action_dim,      config.FirstAction(),
              config.n_action_steps};
    return 0;
  });
}

int mjp_infer(mjp_policy* policy, const mjp_observation* observation, float* actions,
              size_t capacity) {
  return Guard(-1, [&] {
    Require(policy != nullptr && observation != nullptr && actions != nullptr,
            "mjp_infer: an argument is NULL");
    const mjp_observation& o = *observation;
    Require(o.count >= 1 && o.count <= policy->policy->options().batch,
            "mjp_infer: count must be 1 ... batch, as given to mjp_load");
    Require(o.seeds != nullptr && o.decisions != nullptr,
            "mjp_infer: seeds and decisions must be given");
    const mjp::PolicyConfig& config = policy->policy->config();
    const size_t steps = static_cast<size_t>(o.count) * config.n_obs_steps;
    const size_t size = static_cast<size_t>(o.count) * config.horizon * config.action_dim;
    Require(capacity >= size, "mjp_infer: actions needs room for count x H x action_dim numbers");
    policy->keys.clear();
    for (int i = 0; i < o.count; ++i) policy->keys.push_back({o.seeds[i], o.decisions[i]});
    mjp::PolicyInput input;
    input.count = o.count;
    input.frames = View(o.pictures, steps * PictureBytes(config));
    input.state = View(o.state, steps * config.state_dim);
    input.environment = View(o.environment, steps * config.environment_dim);
    input.keys = policy->keys;
    policy->policy->Infer(input, policy->output);
    std::copy_n(policy->output.actions.begin(), size, actions);
    return 0;
  });
}

void mjp_free(mjp_policy* policy) { delete policy; }

const char* mjp_last_error(void) { return last_error.c_str(); }

#include "policy/c_api.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/c_library/handles.h"
#include "base/error.h"
#include "base/fork.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/normalization/statistics.h"
#include "policy/option_names.h"
#include "policy/policy.h"
#include "policy/prefix/event_replanning.h"

namespace {

thread_local std::string last_error;

struct Feature {
  std::string name;
  int dim = 0, height = 0, width = 0;
  const mjp::FeatureStats* stats = nullptr;
  std::string mode = mjp::ModeName(stats->mode);
};

struct Object {
  std::unique_ptr<mjp::Policy> policy;
  std::vector<Feature> features;
  std::optional<mjp::EventReplanning> replanning;  // none: every chunk is taken
  std::vector<mjp::NoiseKey> keys;
  mjp::PolicyOutput output;
  const uint64_t generation = mjp::ForkGeneration();
  std::atomic_flag in_use;  // by a thread, in mjp_infer or mjp_free
};

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

// Throws Error for a struct that is not of this version of the header.
template <typename Struct>
void CheckSize(const Struct& given, const std::string& name, const char* start) {
  if (given.size == sizeof(Struct)) return;
  throw mjp::Error(mjp::ExitCode::kUsage,
                   name + ".size is " + std::to_string(given.size) + ", and this library has " +
                       std::to_string(sizeof(Struct)) + ": start from " + start +
                       ", and compile with the header of ABI version " +
                       std::to_string(MJP_ABI_VERSION));
}

mjp::Handles<mjp_policy, Object>& Loaded() {
  static auto& handles = *new mjp::Handles<mjp_policy, Object>(
      "this mjp_policy was never loaded, or is freed already: use what mjp_load returned, until "
      "mjp_free");
  return handles;
}

mjp::PolicyOptions Convert(const mjp_options& given) {
  CheckSize(given, "mjp_options", "MJP_OPTIONS");
  Require(given.steps >= 0 && given.batch >= 0 && given.threads >= 0,
          "mjp_load: steps, batch and threads must not be negative");
  mjp::PolicyOptions options;
  if (given.backend) options.backend = mjp::ParseBackend("backend", given.backend);
  if (given.precision) options.precision = mjp::ParsePrecision("precision", given.precision);
  if (given.sampler) options.sampler.kind = mjp::ParseSampler("sampler", given.sampler);
  if (given.instruction) options.instruction = given.instruction;
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

// The inputs in the order in which they are given, then the action.
std::vector<Feature> FeaturesOf(const mjp::Checkpoint& checkpoint) {
  const mjp::PolicyConfig& config = checkpoint.config;
  const mjp::NormalizerStats& stats = checkpoint.stats;
  std::vector<Feature> features;
  for (size_t i = 0; i < config.cameras.size(); ++i) {
    const mjp::CameraFeature& camera = config.cameras[i];
    features.push_back(
        {camera.name, camera.channels, camera.height, camera.width, &stats.cameras[i]});
  }
  if (config.state_dim > 0)
    features.push_back({mjp::kStateFeature, config.state_dim, 0, 0, &stats.state});
  if (config.environment_dim > 0)
    features.push_back(
        {mjp::kEnvironmentFeature, config.environment_dim, 0, 0, &stats.environment});
  features.push_back({mjp::kActionFeature, config.action_dim, 0, 0, &stats.action});
  return features;
}

// `size` elements at `data`, or none where there is no pointer: what is missing is found by Infer.
// Throws Error for a pointer to what the policy does not have, called `name`.
template <typename T>
std::span<const T> View(const T* data, size_t size, const char* name) {
  if (data != nullptr && size == 0) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     std::string("mjp_infer: the policy has no ") + name + ": pass NULL");
  }
  return data ? std::span<const T>(data, size) : std::span<const T>();
}

}  // namespace

mjp_policy* mjp_load(const char* directory, const mjp_options* options) {
  return Guard<mjp_policy*>(nullptr, [&] {
    Require(directory != nullptr, "mjp_load: directory is NULL");
    const auto checkpoint = mjp::LoadCheckpoint(directory);
    auto object = std::make_shared<Object>();
    object->policy =
        mjp::Policy::Create(checkpoint, Convert(options ? *options : mjp_options MJP_OPTIONS));
    object->features = FeaturesOf(*checkpoint);
    const mjp::PolicyConfig& config = checkpoint->config;
    object->replanning =
        mjp::ReplanningOf(config, mjp::ResolveRule(config, 0, std::nullopt, 0),
                          config.DecisionSteps(), 0, "replan_beyond", mjp::ExitCode::kBadInput);
    return Loaded().Add(std::move(object));
  });
}

int mjp_describe(const mjp_policy* policy, mjp_shape* shape) {
  return Guard(-1, [&] {
    Require(policy != nullptr && shape != nullptr, "mjp_describe: an argument is NULL");
    CheckSize(*shape, "mjp_shape", "MJP_SHAPE");
    const std::shared_ptr<Object> object = Loaded().Find(policy);
    const mjp::PolicyConfig& config = object->policy->config();
    const bool sees = !config.cameras.empty();
    *shape = {sizeof(mjp_shape),
              config.n_obs_steps,
              config.state_dim,
              config.environment_dim,
              static_cast<int>(config.cameras.size()),
              sees ? config.cameras[0].height : 0,
              sees ? config.cameras[0].width : 0,
              PictureBytes(config),
              config.horizon,
              config.action_dim,
              config.FirstAction(),
              config.n_action_steps,
              static_cast<int>(object->features.size()),
              config.DecisionSteps(),
              std::max(1, mjp::ResolveHoldNoise({}, object->policy->checkpoint(),
                                                config.DecisionSteps()))};
    return 0;
  });
}

int mjp_feature_at(const mjp_policy* policy, int index, mjp_feature* feature) {
  return Guard(-1, [&] {
    Require(policy != nullptr && feature != nullptr, "mjp_feature_at: an argument is NULL");
    CheckSize(*feature, "mjp_feature", "MJP_FEATURE");
    const std::shared_ptr<Object> object = Loaded().Find(policy);
    Require(index >= 0 && index < static_cast<int>(object->features.size()),
            "mjp_feature_at: index must be 0 ... features - 1, as mjp_describe tells");
    const Feature& found = object->features[static_cast<size_t>(index)];
    const auto numbers = [](const std::vector<float>& values) {
      return values.empty() ? nullptr : values.data();
    };
    *feature = {sizeof(mjp_feature),
                found.name.c_str(),
                found.dim,
                found.height,
                found.width,
                found.mode.c_str(),
                numbers(found.stats->first),
                numbers(found.stats->second)};
    return 0;
  });
}

int mjp_abi_version(void) { return MJP_ABI_VERSION; }

int mjp_infer(mjp_policy* policy, const mjp_observation* observation, float* actions,
              size_t capacity) {
  return Guard(-1, [&] {
    Require(policy != nullptr && observation != nullptr && actions != nullptr,
            "mjp_infer: an argument is NULL");
    CheckSize(*observation, "mjp_observation", "MJP_OBSERVATION");
    const std::shared_ptr<Object> object = Loaded().Find(policy);
    Require(object->generation == mjp::ForkGeneration(),
            "this mjp_policy was loaded before fork(), and its threads stay with the parent: load "
            "it again in the child");
    const mjp::Use use(object->in_use,
                       "this mjp_policy is in use by another thread: load one for each thread");
    const mjp_observation& o = *observation;
    Require(o.count >= 1 && o.count <= object->policy->options().batch,
            "mjp_infer: count must be 1 ... batch, as given to mjp_load");
    const bool named = o.seeds != nullptr && o.decisions != nullptr;
    Require(named || object->policy->checkpoint().network->sampler().kinds.empty(),
            "mjp_infer: seeds and decisions must be given");
    const mjp::PolicyConfig& config = object->policy->config();
    const size_t steps = static_cast<size_t>(o.count) * config.n_obs_steps;
    const size_t size = static_cast<size_t>(o.count) * config.horizon * config.action_dim;
    Require(capacity >= size, "mjp_infer: actions needs room for count x H x action_dim numbers");
    object->keys.clear();
    for (int i = 0; named && i < o.count; ++i) object->keys.push_back({o.seeds[i], o.decisions[i]});
    mjp::PolicyInput input;
    input.count = o.count;
    input.frames = View(o.pictures, steps * PictureBytes(config), "pictures");
    input.state = View(o.state, steps * config.state_dim, "state");
    input.environment = View(o.environment, steps * config.environment_dim, "environment state");
    input.keys = object->keys;
    object->policy->Infer(input, object->output);
    std::copy_n(object->output.actions.begin(), size, actions);
    return 0;
  });
}

int mjp_follow(const mjp_policy* policy, int count, const float* before, int* ages, float* chunks) {
  return Guard(-1, [&] {
    Require(policy != nullptr && ages != nullptr && chunks != nullptr,
            "mjp_follow: an argument is NULL");
    Require(count >= 1, "mjp_follow: count must be 1 or more");
    const std::shared_ptr<Object> object = Loaded().Find(policy);
    const std::span<int> robots(ages, static_cast<size_t>(count));
    const bool first = std::ranges::all_of(robots, [](int age) { return age < 0; });
    Require(before != nullptr || first,
            "mjp_follow: before is NULL, and a robot has a chunk: give what the last call wrote, "
            "or ages of -1");
    const mjp::PolicyConfig& config = object->policy->config();
    Require(!config.temporal_ensemble,
            "mjp_follow: this checkpoint ensembles its chunks (temporal_ensemble_coeff), and here "
            "none are averaged: do it yourself (docs/CHECKPOINTS.md, act), or run the policy in "
            "the plugin");
    Require(std::ranges::max(robots) < config.horizon,
            "mjp_follow: an age is the horizon or more: give what the last call wrote");
    const size_t size = static_cast<size_t>(config.horizon) * config.action_dim;
    for (size_t i = 0; i < robots.size(); ++i) {
      const bool fresh = !object->replanning || robots[i] < 0;
      const std::span<float> chunk(chunks + i * size, size);
      robots[i] =
          fresh ? 0
                : object->replanning->Choose(std::span(before + i * size, size), robots[i], chunk);
    }
    return 0;
  });
}

int mjp_free(mjp_policy* policy) {
  return Guard(-1, [&] {
    if (!policy) return 0;
    const std::shared_ptr<Object> object = Loaded().Find(policy);
    if (object->generation != mjp::ForkGeneration()) {
      Loaded().Retire(policy);
      return 0;
    }
    Require(!object->in_use.test_and_set(),
            "this mjp_policy is in use by another thread: free it when that is done");
    Loaded().Remove(policy);
    return 0;
  });
}

const char* mjp_last_error(void) { return last_error.c_str(); }

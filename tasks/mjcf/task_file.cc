#include "tasks/mjcf/task_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text_stream.h"
#include "plugin/model/model_folder.h"
#include "plugin/register.h"
#include "plugin/state.h"

namespace mjp::app {
namespace {

// Attributes that change no action, or that an evaluation has as options of its own.
constexpr const char* kNotOfTheTask[] = {
    "checkpoint", "sampler",   "steps",   "temperature", "parallel", "hold_noise", "seed",
    "backend",    "precision", "threads", "trail",       "label",    "self_check", "record"};

// The bytes of a compiled model without its plugins, and without the paths of its assets, which are
// other ones from another working folder; what was read from them is there.
std::vector<uint8_t> Bytes(const mjModel* model) {
  const ModelPtr copy = CopyOfModel(model);
  std::fill_n(copy->mesh_pathadr, copy->nmesh, -1);
  std::fill_n(copy->hfield_pathadr, copy->nhfield, -1);
  std::fill_n(copy->tex_pathadr, copy->ntex, -1);
  std::fill_n(copy->skin_pathadr, copy->nskin, -1);
  mjModel bare = *copy;
  bare.npaths = 0;
  bare.nplugin = 0;
  bare.npluginattr = 0;
  bare.npluginstate = 0;
  bare.nbuffer = 0;  // as long as the paths
  bare.signature = 0;
  std::vector<uint8_t> bytes(static_cast<size_t>(mj_sizeModel(&bare)));
  mj_saveModel(&bare, nullptr, bytes.data(), static_cast<mjtSize>(bytes.size()));
  return bytes;
}

void AppendAttributes(const mjModel* model, int instance, std::vector<uint8_t>& bytes) {
  for (const char* name : kConfigAttributes) {
    const auto same = [name](const char* each) { return std::string(each) == name; };
    if (std::ranges::any_of(kNotOfTheTask, same)) continue;
    const char* value = mj_getPluginConfig(model, instance, name);
    // younger than the hashes that people have: a task without them keeps its own
    const bool young = same("replan_beyond") || same("replan_after") || same("warm_start");
    if (young && (!value || !*value)) continue;
    const std::string line = std::string(name) + "=" + (value ? value : "") + "\n";
    bytes.insert(bytes.end(), line.begin(), line.end());
  }
}

// A copy of a model that a host compiled, as if its policies had been left out.
ModelPtr LeaveOutPolicies(const mjModel* model) {
  ModelPtr copy = CopyOfModel(model);
  for (const int instance : PolicyInstances(model)) copy->plugin_statenum[instance] = 0;
  copy->opt.disableflags |= mjDSBL_AUTORESET;
  return copy;
}

}  // namespace

ModelPtr CopyOfModel(const mjModel* model) {
  ModelPtr copy(mj_copyModel(nullptr, model));
  if (!copy) throw EnvironmentError("MuJoCo cannot allocate a model");
  return copy;
}

ModelPtr CompileWithoutPolicy(const std::string& path) {
  if (!RegisterPlugin()) throw EnvironmentError("the engine refused the plugin");
  SetModelFolder(std::filesystem::absolute(path).parent_path());
  const PoliciesLeftOut left_out;
  ModelPtr model = LoadModel(path);
  model->opt.disableflags |= mjDSBL_AUTORESET;  // a diverged episode is invalid, not started anew
  return model;
}

int FindPolicy(const mjModel* model) {
  const std::vector<int> instances = PolicyInstances(model);
  if (instances.size() <= 1) return instances.empty() ? -1 : instances[0];
  throw BadInput("the model has " + std::to_string(instances.size()) +
                 " policies: a task has one instance of mjpolicy.policy");
}

bool SaysWholeTask(const mjModel* model) {
  return !CustomNumbers(model, "task.steps").empty() && !CustomText(model, "task.code");
}

int SubstepsOf(const mjModel* model, double period) {
  const double timestep = model->opt.timestep;
  const double steps = period / timestep, whole = std::round(steps);
  if (whole >= 1 && std::abs(steps - whole) < 1e-6 * whole) return static_cast<int>(whole);
  TextWriter text;
  text << "attribute period is " << period << " s, which is no whole number of the model's "
       << "timesteps of " << timestep << " s: change one of them";
  throw BadInput(text.str());
}

TaskFile::TaskFile(const std::string& path) : TaskFile(path, CompileWithoutPolicy(path)) {}

TaskFile::TaskFile(const mjModel* model)
    : TaskFile("the model " + std::string(model->names), LeaveOutPolicies(model)) {}

TaskFile::TaskFile(std::string path, ModelPtr model)
    : path_(std::move(path)),
      model_(std::move(model)),
      instance_(FindPolicy(model_.get())),
      start_(model_.get()) {
  if (instance_ >= 0) policy_ = std::make_unique<Outline>(model_.get(), instance_);
  if (policy_) substeps_ = SubstepsOf(model_.get(), policy_->config.period);
  rules_ = std::make_unique<Rules>(model_.get(), period());
  if (!policy_ && code().empty()) policy();
  std::vector<uint8_t> bytes = Bytes(model_.get());
  model_hash_ = Sha256(bytes);
  if (policy_) AppendAttributes(model_.get(), instance_, bytes);
  hash_ = Sha256(bytes);
}

std::string TaskFile::code() const {
  const char* text = CustomText(model_.get(), "task.code");
  return text ? Trimmed(text) : "";
}

const Outline& TaskFile::policy() const {
  if (policy_) return *policy_;
  throw BadInput(path_ +
                 " has no policy: write an instance of the plugin mjpolicy.policy in <extension>, "
                 "which says what the policy sees and drives (docs/tasks.md); \"mjpolicy "
                 "scaffold\" proposes one");
}

double TaskFile::period() const { return policy_ ? policy_->config.period : Config().period; }

}  // namespace mjp::app

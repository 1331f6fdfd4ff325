#include "policy/network_types.h"

#include "base/error.h"
#include "policy/act/act_model.h"
#include "policy/act/act_policy.h"
#include "policy/cpu/cpu_policy.h"
#include "policy/dit/dit_model.h"
#include "policy/dit/dit_policy.h"
#include "policy/unet/unet_model.h"

#ifdef MJPOLICY_HAVE_CUDA
#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/unet_plans.h"
#endif

namespace mjp {
namespace {

constexpr char kNotBuilt[] =
    "this build has no CUDA kernels; configure it where nvcc is found, or use backend cpu";

constexpr NetworkType UnetType(const char* name, const char* oldest_key = nullptr) {
  NetworkType type{name,    oldest_key, ParseUnetModel, cpu::MakeUnetPolicy,
                   nullptr, kNotBuilt,  nullptr};
#ifdef MJPOLICY_HAVE_CUDA
  type.make_cuda = CreateCudaPolicy;
  type.no_cuda = nullptr;
  type.plans = UnetPlans;
#endif
  return type;
}

constexpr char kActOnCpu[] = "policies of type act have no GPU form yet; use backend cpu, or auto";

constexpr NetworkType kTypes[] = {
    {"act", "chunk_size", ParseActModel, cpu::MakeActPolicy, nullptr, kActOnCpu, nullptr},
    UnetType("diffusion", "down_dims"),
    UnetType("diffusion_compact"),
    UnetType("diffusion_notebook"),
    {"multi_task_dit", nullptr, ParseDitModel, cpu::MakeDitPolicy, nullptr,
     "multi_task_dit runs on the CPU alone; use backend cpu", nullptr},
};

std::string Names() {
  std::string names;
  for (const NetworkType& type : kTypes)
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

}  // namespace

std::span<const NetworkType> NetworkTypes() { return kTypes; }

const NetworkType& NetworkTypeOf(const std::string& name) {
  for (const NetworkType& type : kTypes) {
    if (name == type.name) return type;
  }
  throw Unsupported("no policy is of type \"" + name + "\"; supported are: " + Names());
}

const NetworkType& NetworkTypeIn(KeyReader& keys) {
  if (!keys.Has("type") && keys.Has("input_shapes")) {
    for (const NetworkType& type : kTypes) {
      if (type.oldest_key != nullptr && keys.Has(type.oldest_key)) return type;
    }
  }
  const std::string name = keys.Text("type");
  for (const NetworkType& type : kTypes) {
    if (name == type.name) return type;
  }
  throw keys.Bad("type", "is \"" + name + "\"; supported are: " + Names());
}

}  // namespace mjp

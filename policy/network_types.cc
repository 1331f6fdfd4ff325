#include "policy/network_types.h"

#include "base/error.h"
#include "policy/act/act_model.h"
#include "policy/act/act_policy.h"
#include "policy/dit/dit_model.h"
#include "policy/dit/dit_policy.h"
#include "policy/unet/unet_model.h"
#include "policy/unet/unet_policy.h"

#ifdef MJPOLICY_HAVE_CUDA
#include "policy/cuda/act/act_engine.h"
#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/dit/dit_engine.h"
#include "policy/cuda/unet/unet_engine.h"
#endif

namespace mjp {
namespace {

constexpr char kNotBuilt[] =
    "this build has no CUDA kernels; configure it where nvcc is found, or use backend cpu";

// A row; `cuda` and `plans` are null where the build has no CUDA.
constexpr NetworkType Row(const char* name, const char* oldest_key,
                          decltype(NetworkType::parse) parse, NetworkType::Make make_cpu,
                          const CudaNetwork* cuda, decltype(NetworkType::plans) plans) {
  NetworkType type{name, oldest_key, parse, make_cpu, nullptr, kNotBuilt, cuda, plans};
#ifdef MJPOLICY_HAVE_CUDA
  type.make_cuda = CreateCudaPolicy;
  type.no_cuda = nullptr;
#endif
  return type;
}

using Plans = decltype(NetworkType::plans);
#ifdef MJPOLICY_HAVE_CUDA
constexpr const CudaNetwork *kUnetCuda = &kUnetOnCuda, *kActCuda = &kActOnCuda,
                            *kDitCuda = &kDitOnCuda;
constexpr Plans kUnetPlans = UnetPlans, kActPlans = ActPlans, kDitPlans = DitPlans;
#else
constexpr const CudaNetwork *kUnetCuda = nullptr, *kActCuda = nullptr, *kDitCuda = nullptr;
constexpr Plans kUnetPlans = nullptr, kActPlans = nullptr, kDitPlans = nullptr;
#endif

constexpr NetworkType UnetType(const char* name, const char* oldest_key = nullptr) {
  return Row(name, oldest_key, ParseUnetModel, cpu::MakeUnetPolicy, kUnetCuda, kUnetPlans);
}

constexpr NetworkType DitType(const char* name) {
  return Row(name, nullptr, ParseDitModel, cpu::MakeDitPolicy, kDitCuda, kDitPlans);
}

constexpr NetworkType kTypes[] = {
    Row("act", "chunk_size", ParseActModel, cpu::MakeActPolicy, kActCuda, kActPlans),
    DitType(kCompactDit),
    UnetType("diffusion", "down_dims"),
    UnetType("diffusion_compact"),
    UnetType("diffusion_notebook"),
    DitType("multi_task_dit"),
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

#include <cuda_runtime_api.h>

#include "apps/doctor/finding.h"
#include "base/data_folders.h"
#include "base/error.h"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/cuda/execution_plan.h"
#include "policy/cuda/self_check.h"
#include "policy/unet/unet_model.h"

namespace mjp::app {
namespace {

constexpr int kDecisionSteps = 10;  // of the command that scripts/evaluate runs

std::string ShippedCheckpoint() {
  for (const auto& folder : mjp::DataFolders("assets"))
    if (std::filesystem::exists(folder / "pusht_image")) return folder / "pusht_image";
  throw mjp::BadInput("assets/pusht_image was not found");
}

std::string CudaVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Finding Driver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
    static_cast<void>(cudaGetLastError());
    return {"driver", Health::kAbsent, "no NVIDIA driver found: policies run on the CPU",
            "nothing, on a machine without an NVIDIA GPU"};
  }
  const std::string text = "for CUDA " + CudaVersion(version);
  if (version >= CUDART_VERSION / 1000 * 1000) return {"driver", Health::kWell, text, ""};
  return {"driver", Health::kIll, text + ", and this build needs " + CudaVersion(CUDART_VERSION),
          "update the NVIDIA driver"};
}

// How the shipped policy runs on the device of `gpu`.
Finding ShippedPolicy(const std::string& name, const mjp::GpuTraits& gpu) {
  const auto checkpoint = mjp::LoadCheckpoint(ShippedCheckpoint());
  mjp::ExecutionProblem problem;
  problem.window = mjp::kAutoWindow;
  problem.steps = kDecisionSteps;
  const mjp::ExecutionPlan plan =
      mjp::ChooseExecution(mjp::UnetOf(*checkpoint).config, problem, gpu);
  return {name, Health::kWell, "shipped policy: " + plan.Text() + ", since " + plan.why, ""};
}

// One decision on the current device beside the CPU's.
Finding SelfCheckOf(const std::string& name) {
  const auto checkpoint = mjp::LoadCheckpoint(ShippedCheckpoint());
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCuda;
  options.precision = mjp::Precision::kFp16;
  options.sampler = {mjp::SamplerKind::kDdim, kDecisionSteps, 0, 0, 1};
  const mjp::SelfCheck check = mjp::RunSelfCheck(checkpoint, options);
  char text[96];
  std::snprintf(text, sizeof(text), "self-check: actions within %.1e of the CPU's (limit %.0e)",
                check.error, check.limit);
  if (check.Passed()) return {name, Health::kWell, text, ""};
  return {name, Health::kIll, text, "use --backend cpu, and report it with this page"};
}

// The major compute capability of a device; 0 where it does not answer.
int MajorCapability(int device) {
  int major = 0;
  if (cudaSetDevice(device) == cudaSuccess &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess)
    return major;
  static_cast<void>(cudaGetLastError());
  return 0;
}

// What to do where a GPU, or the shipped policy on it, is not well.
std::string RemedyOf(const mjp::Error& error, int major) {
  if (major == 0) return "nvidia-smi; restart the driver";
  if (10 * major < mjp::kOldestCapability) return "nothing: policies run on the CPU";
  if (error.code() == mjp::ExitCode::kBadInput)
    return "name the folder of assets by the variable MJPOLICY_ASSETS";
  if (dynamic_cast<const mjp::OutOfDeviceMemory*>(&error) != nullptr)
    return "end what else uses the GPU's memory: nvidia-smi lists it";
  return mjp::kBuildForEveryGpu;
}

void ExamineGpu(int device, Findings& findings) {
  const std::string name = "GPU " + std::to_string(device);
  const int major = MajorCapability(device);
  try {
    if (major == 0) throw mjp::EnvironmentError("it does not answer");
    const mjp::GpuTraits& gpu = mjp::GpuTraits::Current();  // of this device
    findings.push_back({name, Health::kWell,
                        gpu.name + ", compute capability " + mjp::CapabilityText(gpu.capability) +
                            ", " + std::to_string(gpu.multiprocessors) + " SMs, " +
                            std::to_string(gpu.shared_bytes / 1024) +
                            " KiB of shared memory; runs code for " +
                            mjp::CapabilityText(gpu.code) + (gpu.code_wgmma ? "a" : ""),
                        ""});
    findings.push_back(ShippedPolicy(name, gpu));
    findings.push_back(SelfCheckOf(name));
  } catch (const mjp::Error& error) {
    findings.push_back({name, Health::kIll, error.what(), RemedyOf(error, major)});
  }
}

}  // namespace

Findings ExamineGpus() {
  Findings findings = {
      {"build", Health::kWell, std::string("CUDA kernels for ") + mjp::BuiltArchitectures(), ""},
      Driver()};
  int count = 0;
  if (findings.back().health != Health::kWell) return findings;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    static_cast<void>(cudaGetLastError());
    findings.push_back(
        {"GPU", Health::kAbsent, "no NVIDIA GPU found: policies run on the CPU", ""});
  }
  for (int device = 0; device < count; ++device) ExamineGpu(device, findings);
  return findings;
}

}  // namespace mjp::app

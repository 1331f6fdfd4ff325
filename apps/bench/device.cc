#include "apps/bench/device.h"

#include <dlfcn.h>

#include <fstream>
#include <thread>

#ifdef MJPOLICY_HAVE_CUDA
#include "kernels/cuda/primitives/gpu_traits.h"
#include "policy/cuda/cuda_policy.h"
#endif

namespace mjp::app {
namespace {

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  const std::string key = "model name";
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

#ifdef MJPOLICY_HAVE_CUDA
// From the driver's management library, which nothing here links to.
std::string DriverVersion() {
  constexpr int kLength = 80;
  char version[kLength] = "unknown";
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return version;
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto read =
      reinterpret_cast<int (*)(char*, unsigned)>(dlsym(library, "nvmlSystemGetDriverVersion"));
  if (init != nullptr && read != nullptr && init() == 0) read(version, kLength);
  return version;
}
#endif

// Whether a GPU can be used; else `why` not.
bool GpuUsable(std::string* why) {
#ifdef MJPOLICY_HAVE_CUDA
  return mjp::CudaUsable(why);
#else
  *why = "this build has no CUDA kernels";
  return false;
#endif
}

}  // namespace

Machine DescribeMachine() {
  Machine machine;
  machine.processor = ProcessorName();
  machine.cores = std::thread::hardware_concurrency();
#ifdef MJPOLICY_HAVE_CUDA
  std::string why;
  if (mjp::CudaUsable(&why)) {
    machine.gpu = mjp::GpuTraits::Current().name;
    machine.driver = DriverVersion();
  }
#endif
  return machine;
}

bool OnCpu(const BenchOptions& options) { return options.policy.backend != mjp::Backend::kCuda; }

BenchRows OnGpu(const BenchOptions& options, const std::string& suite, const Suite& part) {
  std::string why;
  if (options.policy.backend == mjp::Backend::kCpu) return {};
  if (!GpuUsable(&why)) return {Skipped(suite, "on the GPU", why)};
  return part(options);
}

BenchRows Joined(BenchRows rows, const BenchRows& more) {
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace mjp::app

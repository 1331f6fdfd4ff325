#include "apps/profile/kernel_tracer.h"

#include "base/error.h"

#ifdef MJPOLICY_HAVE_CUPTI
#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "base/dynamic_library.h"
#include "policy/timing.h"
#endif

namespace mjp::app {

#ifdef MJPOLICY_HAVE_CUPTI
namespace {

// The part of CUPTI that is used, as the running library has it.
struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiGetTimestamp) timestamp;
};

Cupti LoadCupti() {
  const std::string name = "libcupti.so." + std::to_string(CUDA_VERSION / 1000);
  const mjp::DynamicLibrary library(
      {name, "/usr/local/cuda/lib64/" + name, "/usr/local/cuda/extras/CUPTI/lib64/" + name},
      RTLD_NOW | RTLD_LOCAL, "; --kernels needs its folder on LD_LIBRARY_PATH");
  Cupti cupti;
  library.Find(cupti.register_callbacks, "cuptiActivityRegisterCallbacks");
  library.Find(cupti.enable, "cuptiActivityEnable");
  library.Find(cupti.disable, "cuptiActivityDisable");
  library.Find(cupti.flush, "cuptiActivityFlushAll");
  library.Find(cupti.next_record, "cuptiActivityGetNextRecord");
  library.Find(cupti.timestamp, "cuptiGetTimestamp");
  return cupti;
}

// CUPTI calls back from a thread of its own, without a pointer of ours.
struct Recording {
  Cupti cupti = LoadCupti();
  std::mutex mutex;
  std::vector<KernelSpan> kernels;
  double offset = 0;  // of mjp::Now() to CUPTI's clock, seconds
};
std::unique_ptr<Recording> recording;

void Check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  throw mjp::EnvironmentError(std::string("--kernels: CUPTI refused ") + what + " (" +
                              std::to_string(static_cast<int>(result)) +
                              "); it needs an NVIDIA GPU that no other profiler has taken");
}

// The kernel's own name: no namespace, return type or arguments.
std::string ShortName(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? text.get() : mangled;
  for (const std::string drop : {"void ", "(anonymous namespace)::", "mjp::"})
    for (size_t at; (at = name.find(drop)) != std::string::npos;) name.erase(at, drop.size());
  int depth = 0;  // of template arguments, which may hold parentheses of their own
  size_t end = 0;
  for (; end < name.size() && (depth > 0 || name[end] != '('); ++end)
    depth += name[end] == '<' ? 1 : name[end] == '>' ? -1 : 0;
  return name.substr(0, end);
}

void CUPTIAPI GiveBuffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *size = size_t{4} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *most_records = 0;
}

void CUPTIAPI TakeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard lock(recording->mutex);
  CUpti_Activity* record = nullptr;
  while (recording->cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    // begin, end and name stand at the same place in every version since 4
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
    const auto seconds = [](uint64_t time) {
      return 1e-9 * static_cast<double>(time) + recording->offset;
    };
    recording->kernels.push_back(
        {ShortName(kernel->name), seconds(kernel->start), seconds(kernel->end)});
  }
  std::free(buffer);
}

}  // namespace

KernelTracer::KernelTracer() {
  recording = std::make_unique<Recording>();
  const Cupti& cupti = recording->cupti;
  Check(cupti.register_callbacks(GiveBuffer, TakeBuffer), "the buffers");
  Check(cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "to record kernels");
  uint64_t time = 0;
  const double before = mjp::Now();
  Check(cupti.timestamp(&time), "its clock");
  recording->offset = (before + mjp::Now()) / 2 - 1e-9 * static_cast<double>(time);
}

KernelTracer::~KernelTracer() {
  static_cast<void>(recording->cupti.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

std::vector<KernelSpan> KernelTracer::Finish() {
  Check(recording->cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "to hand out its records");
  const std::lock_guard lock(recording->mutex);
  std::vector<KernelSpan> kernels = std::move(recording->kernels);
  std::sort(kernels.begin(), kernels.end(),
            [](const KernelSpan& a, const KernelSpan& b) { return a.begin < b.begin; });
  return kernels;
}

#else

KernelTracer::KernelTracer() {
  throw mjp::EnvironmentError(
      "--kernels: this build has no CUPTI; configure it with a CUDA toolkit");
}
KernelTracer::~KernelTracer() = default;
std::vector<KernelSpan> KernelTracer::Finish() { return {}; }

#endif

}  // namespace mjp::app

#include "tests/support/gpu/cuda_faults.h"

#include <cuda_runtime_api.h>

#include <mutex>
#include <string_view>
#include <utility>

// the function that a launch by <<<>>> calls; declared for nvcc alone
extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                          void** arguments, size_t shared, cudaStream_t stream);

namespace mjp_test {
namespace {

struct State {
  std::mutex mutex;
  CudaFault fault = {};
  long left = 0;  // calls until the fault; 0: none is planned
  bool failed = false;
  std::string name;                   // of the call that failed
  cudaError_t pending = cudaSuccess;  // what cudaGetLastError is to say
  bool recording = false;
  std::vector<std::string> calls;
};

// never destroyed: static objects call CUDA until the very end
State& TheState() {
  static State& state = *new State;
  return state;
}

// What the call `name` is to return in the place of its own result; cudaSuccess: its own.
cudaError_t Decide(const char* name) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  if (state.recording) state.calls.emplace_back(name);
  const bool first = state.left > 0 && --state.left == 0;
  if (first) {
    state.failed = true;
    state.name = name;
  }
  if (first || (state.failed && state.fault.sticky)) return state.pending = state.fault.error;
  // an error of before is said once
  return std::string_view(name) == "cudaGetLastError" ? std::exchange(state.pending, cudaSuccess)
                                                      : cudaSuccess;
}

// What ends something, or waits for it, has done so although it reports a fault.
bool DoesItsWork(std::string_view name) {
  return name == "cudaStreamSynchronize" || name == "cudaStreamEndCapture" ||
         name.find("Destroy") != name.npos || name.starts_with("cudaFree");
}

template <auto kReal, const char* kName>
struct Wrapper;
template <typename... Arguments, cudaError_t (*kReal)(Arguments...), const char* kName>
struct Wrapper<kReal, kName> {
  static cudaError_t Call(Arguments... arguments) {
    const cudaError_t fault = Decide(kName);
    if (fault == cudaSuccess) return kReal(arguments...);
    if (DoesItsWork(kName)) static_cast<void>(kReal(arguments...));
    return fault;
  }
};

}  // namespace

void ArmCudaFault(const CudaFault& fault, long n) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.fault = fault;
  state.left = n;
  state.failed = false;
  state.name.clear();
}

std::string DisarmCudaFault() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.left = 0;
  state.failed = false;
  state.pending = cudaSuccess;
  return std::exchange(state.name, "");
}

void RecordCudaCalls() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.recording = true;
}

std::vector<std::string> TakeCudaCalls() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.recording = false;
  return std::exchange(state.calls, {});
}

}  // namespace mjp_test

// the linker's names; the type of each function is that of the one that it stands for
#define CUDA_CALL(function)                                                  \
  extern "C" decltype(function) __real_##function;                           \
  static constexpr char kNameOf_##function[] = #function;                    \
  extern "C" decltype(&(function)) Resolve_##function() {                    \
    return &mjp_test::Wrapper<&__real_##function, kNameOf_##function>::Call; \
  }                                                                          \
  extern "C" __attribute__((ifunc("Resolve_" #function))) decltype(function) __wrap_##function;
// NOLINTBEGIN(bugprone-reserved-identifier)
#include "tests/support/gpu/cuda_calls.inc"
// NOLINTEND(bugprone-reserved-identifier)

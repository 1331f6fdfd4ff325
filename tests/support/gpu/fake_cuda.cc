#include "tests/support/gpu/fake_cuda.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "tests/support/gpu/fake_cuda_objects.h"

namespace mjp_test {
namespace fake {
namespace {

constexpr const char* kNames[kKinds] = {"device memory", "pinned memory", "streams",
                                        "events",        "graphs",        "executable graphs"};

struct Object {
  Kind kind;
  size_t bytes;
};
struct Fake {
  std::recursive_mutex mutex;
  std::map<void*, Object> objects;
  size_t memory = 0;  // bytes of the device's that are taken
  std::map<const void*, std::string> kernels;
  std::string misuse;
};

// never destroyed: static objects call until the very end
Fake& TheFake() {
  static Fake& fake = *new Fake;
  return fake;
}
thread_local cudaError_t last = cudaSuccess;

}  // namespace

std::lock_guard<std::recursive_mutex> Lock() { return std::lock_guard(TheFake().mutex); }

cudaError_t Say(cudaError_t status) {
  if (status != cudaSuccess) last = status;
  return status;
}

void* Add(void* object, Kind kind, size_t bytes) {
  TheFake().objects[object] = {kind, bytes};
  if (kind == kMemory) TheFake().memory += bytes;
  return object;
}

bool Known(void* object, Kind kind, const char* call) {
  const auto found = TheFake().objects.find(object);
  if (found != TheFake().objects.end() && found->second.kind == kind) return true;
  if (TheFake().misuse.empty())
    TheFake().misuse = std::string(call) + " of what is none of the " + kNames[kind];
  return false;
}

// Forgets the object; false and a note of the misuse where it is not known.
bool Remove(void* object, Kind kind, const char* call) {
  if (!Known(object, kind, call)) return false;
  const auto found = TheFake().objects.find(object);
  if (kind == kMemory) TheFake().memory -= found->second.bytes;
  TheFake().objects.erase(found);
  return true;
}

namespace {
thread_local int set_device = -1;  // -1: none
}

int Device() { return set_device < 0 ? TheFakeGpu().device : set_device; }

Stream* StreamOf(cudaStream_t stream, const char* call) {
  static Stream standard;
  if (stream == nullptr || stream == cudaStreamLegacy) return &standard;
  return Known(stream, kStream, call) ? reinterpret_cast<Stream*>(stream) : nullptr;
}

void DeleteGraph(Graph* graph) {
  for (cudaGraph_t body : graph->bodies) delete reinterpret_cast<Graph*>(body);
  delete graph;
}

}  // namespace fake

using namespace fake;

std::string FakeCudaObjects() {
  const auto lock = Lock();
  int counts[kKinds] = {};
  for (const auto& [address, object] : TheFake().objects) ++counts[object.kind];
  std::string text;
  for (int kind = 0; kind < kKinds; ++kind) {
    if (counts[kind] == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(counts[kind]) + " " + kNames[kind];
  }
  return text;
}

FakeGpu& TheFakeGpu() {
  static FakeGpu& gpu = *new FakeGpu;
  return gpu;
}

std::string FakeCudaMisuse() {
  const auto lock = Lock();
  return TheFake().misuse;
}

}  // namespace mjp_test

using namespace mjp_test::fake;

namespace {

// Does `work`, or puts it into the graph that the stream is captured into.
cudaError_t Enqueue(cudaStream_t handle, const char* call, std::function<void()> work) {
  const auto lock = Lock();
  Stream* stream = StreamOf(handle, call);
  if (stream == nullptr) return Say(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) {
    stream->capture->work.push_back(std::move(work));
  } else {
    work();
  }
  return cudaSuccess;
}

// Into a stream of the thread's device alone.
cudaError_t EnqueueLaunch(const void* kernel, void** arguments, cudaStream_t handle) {
  const auto lock = Lock();
  if (const auto& launched = mjp_test::TheFakeGpu().launched)
    launched(TheFake().kernels[kernel], arguments);
  const Stream* stream = StreamOf(handle, "launch");
  if (handle != nullptr && stream != nullptr && stream->device != Device())
    return Say(cudaErrorInvalidResourceHandle);
  return Enqueue(handle, "launch", [] {});
}

cudaError_t Allocate(void** memory, size_t bytes, Kind kind) {
  const auto lock = Lock();
  if (captures > 0) return Say(cudaErrorStreamCaptureUnsupported);
  if (kind == kMemory && TheFake().memory + bytes > mjp_test::TheFakeGpu().memory)
    return Say(cudaErrorMemoryAllocation);
  *memory = Add(std::calloc(bytes == 0 ? 1 : bytes, 1), kind, bytes);
  return cudaSuccess;
}

cudaError_t Release(void* memory, Kind kind, const char* call) {
  const auto lock = Lock();
  if (memory == nullptr) return cudaSuccess;
  if (!Remove(memory, kind, call)) return Say(cudaErrorInvalidValue);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t MakeEvent(cudaEvent_t* event) {
  const auto lock = Lock();
  *event = static_cast<cudaEvent_t>(Add(std::malloc(1), kEvent));
  return cudaSuccess;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the names of nvcc's own calls
extern "C" {

// ---- code of kernels
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  TheFake().kernels[function] = name;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

namespace {
struct LaunchShape {
  dim3 grid, block;
  size_t shared = 0;
  void* stream = nullptr;
};
thread_local LaunchShape launch;

// Whether a block of the GPU may have so many bytes of shared memory.
bool HasShared(size_t bytes) {
  return bytes <= size_t{1024} * static_cast<size_t>(mjp_test::TheFakeGpu().shared_kib);
}
}  // namespace
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     struct CUstream_st* stream) {
  launch = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = launch.grid;
  *block = launch.block;
  *shared = launch.shared;
  *static_cast<void**>(stream) = launch.stream;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void** arguments, size_t,
                               cudaStream_t stream) {
  return EnqueueLaunch(kernel, arguments, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                void** arguments) {
  if (!HasShared(config->dynamicSmemBytes)) return Say(cudaErrorInvalidValue);
  return EnqueueLaunch(kernel, arguments, config->stream);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->ptxVersion = mjp_test::TheFakeGpu().code;
  // what kernels/cuda/primitives/gpu_probe.cu has on sm_90a, and elsewhere
  attributes->sharedSizeBytes = mjp_test::TheFakeGpu().code_wgmma ? 128 : 64;
  return Say(mjp_test::TheFakeGpu().code_status);
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  const bool shared = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize;
  return Say(shared && !HasShared(value) ? cudaErrorInvalidValue : cudaSuccess);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                   size_t, unsigned) {
  *blocks = 1;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void*,
                                           const cudaLaunchConfig_t* config) {
  const auto& size = config->attrs[0].val.clusterDim;
  *clusters = mjp_test::TheFakeGpu().multiprocessors_in_clusters /
              static_cast<int>(size.x * size.y * size.z);
  return *clusters == 0 ? cudaErrorInvalidClusterSize : cudaSuccess;
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, const void*,
                                                 const cudaLaunchConfig_t*) {
  *blocks = 8;
  return cudaSuccess;
}

// ---- the device
cudaError_t cudaDriverGetVersion(int* version) {
  *version = mjp_test::TheFakeGpu().driver;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return Say(mjp_test::TheFakeGpu().count_status);
}
cudaError_t cudaGetDevice(int* device) {
  *device = Device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  set_device = device == mjp_test::TheFakeGpu().device ? -1 : device;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
                                             unsigned long long, cudaDriverEntryPointQueryResult*) {
  *function = nullptr;
  return Say(cudaErrorSymbolNotFound);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "a fake GPU");
  properties->major = mjp_test::TheFakeGpu().capability / 10;
  properties->minor = mjp_test::TheFakeGpu().capability % 10;
  properties->multiProcessorCount = mjp_test::TheFakeGpu().multiprocessors;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin
               ? mjp_test::TheFakeGpu().shared_kib * 1024
               : 1;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorLaunchTimeout:
      return "the launch timed out and was terminated";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    default:
      return error == cudaSuccess ? "no error" : "unknown error";
  }
}
cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }

// ---- memory
cudaError_t cudaMalloc(void** memory, size_t bytes) { return Allocate(memory, bytes, kMemory); }
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return Allocate(memory, bytes, kPinned);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void*) {
  *attributes = {};
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) { return Release(memory, kMemory, "cudaFree"); }
cudaError_t cudaFreeHost(void* memory) { return Release(memory, kPinned, "cudaFreeHost"); }
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (captures > 0) return Say(cudaErrorStreamCaptureUnsupported);
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) {
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  if (captures > 0) return Say(cudaErrorStreamCaptureUnsupported);
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return Enqueue(stream, "cudaMemcpyAsync", [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  return Enqueue(stream, "cudaMemcpy2DAsync", [=] {
    for (size_t y = 0; y < height; ++y)
      std::memcpy(static_cast<char*>(to) + y * to_pitch,
                  static_cast<const char*>(from) + y * from_pitch, width);
  });
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return Enqueue(stream, "cudaMemsetAsync", [=] { std::memset(memory, value, bytes); });
}

// ---- streams and events
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const auto lock = Lock();
  *stream = static_cast<cudaStream_t>(Add(new Stream{.device = Device()}, kStream));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const auto lock = Lock();
  if (!Remove(handle, kStream, "cudaStreamDestroy")) return Say(cudaErrorInvalidResourceHandle);
  auto* stream = reinterpret_cast<Stream*>(handle);
  if (stream->capture != nullptr) --captures;
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const auto lock = Lock();
  Stream* stream = StreamOf(handle, "cudaStreamSynchronize");
  if (stream == nullptr) return Say(cudaErrorInvalidResourceHandle);
  if (stream->capture == nullptr) return cudaSuccess;
  stream->invalid = true;
  return Say(cudaErrorStreamCaptureUnsupported);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return MakeEvent(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const auto lock = Lock();
  if (!Remove(event, kEvent, "cudaEventDestroy")) return Say(cudaErrorInvalidResourceHandle);
  std::free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return Known(event, kEvent, "cudaEventRecordWithFlags")
             ? Enqueue(stream, "cudaEventRecordWithFlags", [] {})
             : Say(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return Known(event, kEvent, "cudaStreamWaitEvent") ? Enqueue(stream, "cudaStreamWaitEvent", [] {})
                                                     : Say(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0.01f;
  return cudaSuccess;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

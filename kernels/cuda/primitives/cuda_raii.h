#ifndef KERNELS_CUDA_PRIMITIVES_CUDA_RAII_H_
#define KERNELS_CUDA_PRIMITIVES_CUDA_RAII_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

#include "kernels/cuda/primitives/cuda_check.h"

// Owners of what the CUDA runtime makes. Each gives it back whatever is thrown meanwhile; what that
// call returns is not read, since nobody could act on it and the driver may be gone at exit.

namespace mjp {

template <auto kDestroy>
struct CudaDeleter {
  template <typename Object>
  void operator()(Object* object) const {
    static_cast<void>(kDestroy(object));
  }
};
template <typename Handle, auto kDestroy>
using CudaOwner = std::unique_ptr<std::remove_pointer_t<Handle>, CudaDeleter<kDestroy>>;

using CudaStream = CudaOwner<cudaStream_t, &cudaStreamDestroy>;
using CudaEvent = CudaOwner<cudaEvent_t, &cudaEventDestroy>;
using CudaGraph = CudaOwner<cudaGraph_t, &cudaGraphDestroy>;
using CudaGraphExec = CudaOwner<cudaGraphExec_t, &cudaGraphExecDestroy>;

// A stream that does not wait for the default one. Throws Error, as all here do.
inline CudaStream MakeCudaStream() {
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  return CudaStream(stream);
}

// An event that takes the time.
inline CudaEvent MakeCudaEvent() {
  cudaEvent_t event = nullptr;
  CheckCuda(cudaEventCreate(&event), "event");
  return CudaEvent(event);
}

inline CudaGraphExec InstantiateGraph(const CudaGraph& graph) {
  cudaGraphExec_t exec = nullptr;
  CheckCuda(cudaGraphInstantiate(&exec, graph.get(), 0), "instantiation of the graph");
  return CudaGraphExec(exec);
}

// Memory of the device for a moment, of any content; what stays has a DeviceArena
// (policy/cuda/arena.h). Throws OutOfDeviceMemory too.
template <typename T>
using DeviceArray = std::unique_ptr<T, CudaDeleter<&cudaFree>>;
template <typename T>
DeviceArray<T> MakeDeviceArray(size_t size) {
  void* memory = nullptr;
  CheckCuda(cudaMalloc(&memory, size * sizeof(T)), "device memory");
  return DeviceArray<T>(static_cast<T*>(memory));
}

// Memory of the host that the device copies from and to on its own; begins as zeros. Empty until
// one with a size is moved in.
template <typename T>
class PinnedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  PinnedArray() = default;
  explicit PinnedArray(size_t size) : size_(size) {
    if (size == 0) return;
    void* memory = nullptr;
    CheckCuda(cudaHostAlloc(&memory, bytes(), cudaHostAllocDefault), "pinned memory");
    memory_.reset(static_cast<T*>(memory));
    std::memset(memory, 0, bytes());
  }

  T* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }
  T& operator[](size_t i) const { return memory_.get()[i]; }

 private:
  std::unique_ptr<T, CudaDeleter<&cudaFreeHost>> memory_;
  size_t size_ = 0;
};

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_CUDA_RAII_H_

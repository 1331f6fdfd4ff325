#ifndef TESTS_SUPPORT_MEMORY_WATCH_H_
#define TESTS_SUPPORT_MEMORY_WATCH_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

// Sees what memory the device gives a program, and each launch of a kernel. A program gets this by
// linking memory_watch.cc with --wrap for the functions that it wraps (tests/CMakeLists.txt).

namespace mjp_test {

// Memory that the device was given by cudaMalloc.
struct DeviceBlock {
  char* begin;
  size_t bytes;
  size_t uploaded;  // bytes that were copied there from the host
};

class MemoryWatch {
 public:
  static MemoryWatch& Get();

  std::vector<DeviceBlock> Blocks() const;
  // Called before each launch of a kernel outside a capture: its number, from 1, and its stream.
  void BeforeLaunch(std::function<void(long launch, cudaStream_t stream)> call);

  // For the wrappers.
  void Allocated(void* memory, size_t bytes);
  void Freed(void* memory);
  void Uploaded(const void* memory, size_t bytes);
  void Launching(cudaStream_t stream);

 private:
  std::function<void(long launch, cudaStream_t stream)> before_launch_;
  long launches_ = 0;
  std::map<char*, DeviceBlock> blocks_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_MEMORY_WATCH_H_

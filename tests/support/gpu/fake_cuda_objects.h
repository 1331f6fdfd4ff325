#ifndef TESTS_SUPPORT_GPU_FAKE_CUDA_OBJECTS_H_
#define TESTS_SUPPORT_GPU_FAKE_CUDA_OBJECTS_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <mutex>
#include <vector>

// What the two files of the fake CUDA runtime share.

namespace mjp_test::fake {

// Work of a graph, in the order of its capture. A loop's body is a graph of its own that is not
// run, as kernels are not.
struct Graph {
  std::vector<std::function<void()>> work;
  std::vector<cudaGraph_t> bodies;
};
struct Stream {
  int device = 0;
  Graph* capture = nullptr;  // what its work goes into
  bool invalid = false;      // the capture met what cannot be captured
};

enum Kind { kMemory, kPinned, kStream, kEvent, kGraph, kExec, kKinds };

inline thread_local int captures = 0;  // under way, of this thread

std::lock_guard<std::recursive_mutex> Lock();
// Notes `status` for cudaGetLastError and returns it.
cudaError_t Say(cudaError_t status);
// Notes an object that must be given back, and returns it; of memory, its bytes.
void* Add(void* object, Kind kind, size_t bytes = 0);
// False, and a note of the misuse by `call`, where there is no such object.
bool Known(void* object, Kind kind, const char* call);
// Forgets the object; false as Known.
bool Remove(void* object, Kind kind, const char* call);
// The device of this thread's calls.
int Device();
// Null where there is no such stream.
Stream* StreamOf(cudaStream_t stream, const char* call);
void DeleteGraph(Graph* graph);

}  // namespace mjp_test::fake

#endif  // TESTS_SUPPORT_GPU_FAKE_CUDA_OBJECTS_H_

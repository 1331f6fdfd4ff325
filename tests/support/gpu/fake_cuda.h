#ifndef TESTS_SUPPORT_GPU_FAKE_CUDA_H_
#define TESTS_SUPPORT_GPU_FAKE_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>

// A CUDA runtime without a GPU: fake_cuda.cc, linked before the real one's archive. Device memory
// is the host's, copies are done, kernels are not run: their outputs stay zero. A call that it
// lacks shows as multiple definitions of the others when a test is linked: add it here and to
// cuda_calls.inc.

namespace mjp_test {

// What the runtime finds: a GPU with code for it, unless a test says otherwise.
struct FakeGpu {
  int device = 0;  // of the calling thread; the program asks once about each
  int capability = 90, multiprocessors = 132, shared_kib = 227;
  int code = 90;  // what the kernels were compiled for, with sm_90a's instructions or without
  bool code_wgmma = true;
  // Multiprocessors in clusters of eight or more blocks at once; 0: clusters do not fit.
  int multiprocessors_in_clusters = 112;
  cudaError_t code_status = cudaSuccess;   // the answer to what asks about the code
  cudaError_t count_status = cudaSuccess;  // the answer to what counts devices
  int driver = CUDART_VERSION;             // 0: none
  size_t memory = SIZE_MAX;                // bytes of device memory
  // Told of each launch when it is enqueued: the kernel's mangled name and its arguments.
  std::function<void(const std::string& kernel, void** arguments)> launched;
};
// Changed while nothing else calls CUDA.
FakeGpu& TheFakeGpu();

// What the program holds of the fake: "2 streams, 1 event"; "" for nothing.
std::string FakeCudaObjects();
// The first misuse, such as memory freed twice; "" for none.
std::string FakeCudaMisuse();

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GPU_FAKE_CUDA_H_

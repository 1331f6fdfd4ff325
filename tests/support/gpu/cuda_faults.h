#ifndef TESTS_SUPPORT_GPU_CUDA_FAULTS_H_
#define TESTS_SUPPORT_GPU_CUDA_FAULTS_H_

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

// Lets a chosen call of CUDA fail. A program gets this by linking cuda_faults.cc with --wrap for
// each function of cuda_calls.inc (mjp_add_cuda_faults in tests/CMakeLists.txt).

namespace mjp_test {

struct CudaFault {
  cudaError_t error;
  bool sticky;  // every call after it fails too, as after a fault of a kernel
};

// The names of the calls that `work` makes, in their order.
std::vector<std::string> CudaCallsOf(const auto& work);

// Lets the n-th call from now fail, counted from 1.
void ArmCudaFault(const CudaFault& fault, long n);
// Ends it. The name of the call that failed; "" where there were too few calls.
std::string DisarmCudaFault();

// Notes the names of all calls until it is taken.
void RecordCudaCalls();
std::vector<std::string> TakeCudaCalls();

std::vector<std::string> CudaCallsOf(const auto& work) {
  RecordCudaCalls();
  work();
  return TakeCudaCalls();
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GPU_CUDA_FAULTS_H_

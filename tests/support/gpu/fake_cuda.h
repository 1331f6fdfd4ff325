#ifndef TESTS_SUPPORT_GPU_FAKE_CUDA_H_
#define TESTS_SUPPORT_GPU_FAKE_CUDA_H_

#include <string>

// A CUDA runtime without a GPU: fake_cuda.cc, linked before the real one's archive. Device memory
// is the host's, copies are done, kernels are not run: their outputs stay zero. It is a GPU of
// compute capability 9.0 with code for it.

namespace mjp_test {

// What the program holds of the fake: "2 streams, 1 event"; "" for nothing.
std::string FakeCudaObjects();
// The first misuse, such as memory freed twice; "" for none.
std::string FakeCudaMisuse();

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GPU_FAKE_CUDA_H_

// The sequence kernel in bf16; kernels/cuda/sequence_kernel/forms.cuh tells the design.

#include "kernels/cuda/sequence_kernel/forms.cuh"

namespace mjp::sequence_kernel {

void LaunchBf16(const Args& args, cudaStream_t stream) {
  LaunchFormat<Format::kBf16>(args, stream);
}

}  // namespace mjp::sequence_kernel

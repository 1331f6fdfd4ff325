// The sequence kernel in fp16; kernels/cuda/sequence_kernel/forms.cuh tells the design.

#include "kernels/cuda/sequence_kernel/forms.cuh"

namespace mjp::sequence_kernel {

void LaunchFp16(const Args& args, cudaStream_t stream) {
  LaunchFormat<Format::kFp16>(args, stream);
}

}  // namespace mjp::sequence_kernel

// Which form of the sequence kernel runs a shape; forms.cuh has the kernel.

#include "base/error.h"
#include "kernels/cuda/sequence_kernel/cta.cuh"

namespace mjp::sequence_kernel {

bool Supports(Format format, const Shape& s, const GpuTraits& gpu) {
  const bool wide = s.width == 64 || s.width == 128 || s.width == 256 || s.width == 512;
  if (FormatBytes(format) != 2 || !wide || s.heads < 1 || s.width % s.heads != 0) return false;
  const int head = s.HeadSize();
  return (head == 16 || head == 32 || head == 64) && s.length <= kMostLength &&
         s.action_dim <= kMostActions && gpu.ClusterBlocks() >= 8 &&
         LayoutOf(s).end <= gpu.shared_bytes;
}

void LaunchSequenceKernel(Format format, const Args& args, cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchFp16(args, stream);
  if (format == Format::kBf16) return LaunchBf16(args, stream);
  throw Unsupported("the sequence kernel has fp16 and bf16 forms alone");
}

}  // namespace mjp::sequence_kernel

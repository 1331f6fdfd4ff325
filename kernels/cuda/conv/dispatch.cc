// Which kernel runs a convolution.

#include <algorithm>
#include <string>

#include "base/error.h"
#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/conv/implicit_gemm_mma.cuh"
#include "kernels/cuda/conv/implicit_gemm_wgmma.cuh"
#include "kernels/cuda/conv/matrix_vector.cuh"
#include "kernels/cuda/tma_conv/tma_conv.cuh"
#include "kernels/cuda/tma_linear/tma_linear.cuh"

namespace mjp {
namespace {

void CheckShape(const ConvShape& s) {
  const bool fits = s.in_c % 8 == 0 && s.first_c % 8 == 0 && s.out_c > 0 && s.Positions() > 0 &&
                    (s.phases == 1 || (s.phases == 2 && s.kernel_h == 1 && s.kernel_w == 2));
  if (fits) return;
  throw Unsupported("convolution " + std::to_string(s.in_c) + " -> " + std::to_string(s.out_c) +
                    ", kernel " + std::to_string(s.kernel_h) + "x" + std::to_string(s.kernel_w) +
                    ": the GPU kernels take input channels in multiples of 8, and transposed "
                    "convolutions of kernel 4, stride 2, padding 1");
}

// By the kernel of the least measured time.
void LaunchHopper(Format format, const ConvArgs& args, cudaStream_t stream) {
  const double wgmma = MeasuredWgmmaConvTime(args.shape);
  const double by_tma = tma_conv::Time(format, args), linear = tma_linear::Time(format, args);
  if (linear < std::min(wgmma, by_tma)) return tma_linear::Launch(format, args, stream);
  by_tma < wgmma ? tma_conv::Launch(format, args, stream) : LaunchWgmmaConv(format, args, stream);
}

}  // namespace

void LaunchConv(Format format, const ConvArgs& args, cudaStream_t stream) {
  CheckShape(args.shape);
  if (WgmmaConvSupports(format, args)) return LaunchHopper(format, args, stream);
  if (MatrixVectorSupports(format, args)) return LaunchMatrixVector(format, args, stream);
  if (WgmmaTf32ConvSupports(format, args)) return LaunchWgmmaTf32Conv(format, args, stream);
  LaunchMmaConv(format, args, stream);
}

}  // namespace mjp

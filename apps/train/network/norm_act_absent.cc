// In place of norm_act.cu where there is no nvcc.

#include "apps/train/network/norm_act.h"
#include "base/error.h"

namespace mjp::app {
namespace {

mjp::Error Absent() {
  return mjp::EnvironmentError(
      "this build has no GPU kernels, for nvcc was not there: train on the "
      "CPU, or build with CUDA");
}

}  // namespace

NormActForward NormActForwardCuda(const NormActInput&) { throw Absent(); }

NormActBackward NormActBackwardCuda(const NormActInput&, const NormActForward&, const at::Tensor&) {
  throw Absent();
}

}  // namespace mjp::app

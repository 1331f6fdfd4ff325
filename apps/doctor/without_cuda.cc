#include "apps/doctor/finding.h"

namespace mjp::app {

Findings ExamineGpus() {
  return {{"build", Health::kAbsent, "no CUDA kernels: policies run on the CPU",
           "configure the build where nvcc is found, for an NVIDIA GPU"}};
}

}  // namespace mjp::app

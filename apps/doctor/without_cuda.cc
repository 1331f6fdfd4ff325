#include <fstream>
#include <string>

#include "apps/doctor/finding.h"

namespace mjp::app {
namespace {

// As the kernel's module tells it.
Finding Driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (std::getline(file, line)) return {"driver", Health::kWell, line, ""};
  return {"driver", Health::kAbsent, "no NVIDIA driver found: policies run on the CPU",
          "nothing, on a machine without an NVIDIA GPU"};
}

}  // namespace

Findings ExamineGpus() {
  return {{"build", Health::kAbsent, "no CUDA kernels: policies run on the CPU",
           "configure the build where nvcc is found, for an NVIDIA GPU"},
          Driver()};
}

}  // namespace mjp::app

#include "tasks/evaluation/version.h"

#include <mujoco/mujoco.h>

#include "kernels/cpu/isa.h"
#ifdef MJPOLICY_HAVE_CUDA
#include "kernels/cuda/primitives/gpu_traits.h"
#endif

namespace mjp::app {

std::string ProjectVersion() {
  const std::string commit = MJPOLICY_COMMIT;
  return std::string(MJPOLICY_VERSION) + (commit.empty() ? "" : "+" + commit);
}

std::string VersionText(const std::string& program) {
  std::string text = program + " " + ProjectVersion() + "\nMuJoCo " + mj_versionString() +
                     "\ncompiler " + __VERSION__ + "\nCPU kernels " +
                     mjp::IsaName(mjp::ActiveIsa());
#ifdef MJPOLICY_HAVE_CUDA
  text += std::string("\nCUDA kernels for ") + BuiltArchitectures();
#else
  text += "\nCUDA kernels not built";
#endif
  return text;
}

}  // namespace mjp::app

#include "apps/version.h"

#include <mujoco/mujoco.h>

#include "kernels/isa.h"

namespace pusht {

std::string ProjectVersion() {
  const std::string commit = PUSHT_COMMIT;
  return std::string(PUSHT_VERSION) + (commit.empty() ? "" : "+" + commit);
}

std::string VersionText() {
  std::string text = "pusht " + ProjectVersion() + "\nMuJoCo " + mj_versionString() +
                     "\ncompiler " + __VERSION__ + "\nCPU kernels " + dp::IsaName(dp::ActiveIsa());
#ifdef PUSHT_HAVE_CUDA
  text += "\nCUDA kernels built in";
#else
  text += "\nCUDA kernels not built";
#endif
  return text;
}

}  // namespace pusht

#ifndef APPS_PROFILE_KERNEL_TRACER_H_
#define APPS_PROFILE_KERNEL_TRACER_H_

#include <string>
#include <vector>

namespace mjp::app {

// One kernel on the GPU, in seconds of mjp::Now().
struct KernelSpan {
  std::string name;
  double begin, end;
};

// Records every kernel of the process through CUPTI, which is loaded by name: nothing links to it.
// One at a time; make it before the policy, so that its graphs are seen.
class KernelTracer {
 public:
  // Starts recording. Throws Error(kEnvironment) where CUPTI is not there or refuses.
  KernelTracer();
  ~KernelTracer();
  KernelTracer(const KernelTracer&) = delete;
  KernelTracer& operator=(const KernelTracer&) = delete;

  // The kernels that have ended, in the order they began; stops recording.
  std::vector<KernelSpan> Finish();
};

}  // namespace mjp::app

#endif  // APPS_PROFILE_KERNEL_TRACER_H_

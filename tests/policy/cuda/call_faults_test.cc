// Faults of calls of CUDA on a runtime that needs no GPU: every call fails once.

#include "tests/policy/cuda/call_faults.h"

#include "tests/support/gpu/fake_cuda.h"

namespace mjp_test {

const CallFaultsRuntime kCallFaultsRuntime = {[] { return true; }, false, 100, FakeCudaObjects,
                                              FakeCudaMisuse};

}  // namespace mjp_test

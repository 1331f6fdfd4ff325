// Faults of calls of CUDA on a GPU: a part of the calls, with actions that are compared.

#include "tests/policy/cuda/call_faults.h"
#include "tests/support/gpu/device_buffer.h"

namespace mjp_test {

const CallFaultsRuntime kCallFaultsRuntime = {HaveDevice, true, 24, [] { return std::string(); },
                                              [] { return std::string(); }};

}  // namespace mjp_test

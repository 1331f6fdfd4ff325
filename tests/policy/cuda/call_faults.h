#ifndef TESTS_POLICY_CUDA_CALL_FAULTS_H_
#define TESTS_POLICY_CUDA_CALL_FAULTS_H_

#include <string>

namespace mjp_test {

// The CUDA runtime that the tests of call_faults.cc are linked with.
struct CallFaultsRuntime {
  bool (*available)();
  bool computes;             // kernels run, so that the self-check at load passes
  size_t most_tries;         // of one kind of fault in one place of one form
  std::string (*objects)();  // what the program holds of it
  std::string (*misuse)();   // "" for none
};
extern const CallFaultsRuntime kCallFaultsRuntime;

}  // namespace mjp_test

#endif  // TESTS_POLICY_CUDA_CALL_FAULTS_H_

#ifndef TESTS_SUPPORT_GOLDENS_SMALL_CHECKPOINT_H_
#define TESTS_SUPPORT_GOLDENS_SMALL_CHECKPOINT_H_

#include <string>

namespace mjp_test {

// Writes an image policy for Push-T with random weights, small enough to run whole episodes in
// milliseconds, into `directory`.
void WriteSmallCheckpoint(const std::string& directory);

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GOLDENS_SMALL_CHECKPOINT_H_

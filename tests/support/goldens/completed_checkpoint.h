#ifndef TESTS_SUPPORT_GOLDENS_COMPLETED_CHECKPOINT_H_
#define TESTS_SUPPORT_GOLDENS_COMPLETED_CHECKPOINT_H_

#include <string>

namespace mjp_test {

// Copies a golden policy directory whose ResNet tensors were left out to `to`, and fills them by
// the formula.
void CompleteBackbone(const std::string& from, const std::string& to);

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GOLDENS_COMPLETED_CHECKPOINT_H_

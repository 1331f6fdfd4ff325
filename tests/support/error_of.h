#ifndef TESTS_SUPPORT_ERROR_OF_H_
#define TESTS_SUPPORT_ERROR_OF_H_

#include <functional>
#include <string>

#include "base/error.h"

namespace mjp_test {

// The text of the Error with which `action` ends; "" if it does not throw.
inline std::string ErrorOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const mjp::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_ERROR_OF_H_

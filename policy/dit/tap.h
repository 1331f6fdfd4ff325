#ifndef POLICY_DIT_TAP_H_
#define POLICY_DIT_TAP_H_

#include <cstdint>
#include <functional>
#include <string>

namespace mjp {

// Is shown intermediates of a network, by the goldens' names: (rows, width) values. An empty one
// costs nothing, and lets a network leave out what nobody will see.
using Tap =
    std::function<void(const std::string& name, const float* values, int64_t rows, int64_t width)>;

}  // namespace mjp

#endif  // POLICY_DIT_TAP_H_

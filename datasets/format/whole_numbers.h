#ifndef DATASETS_FORMAT_WHOLE_NUMBERS_H_
#define DATASETS_FORMAT_WHOLE_NUMBERS_H_

#include <cstdint>

namespace mjp::datasets {

// The largest integer that a frame has as a double: one further on may be its neighbour.
constexpr int64_t kMostExact = (int64_t{1} << 53) - 1;

}  // namespace mjp::datasets

#endif  // DATASETS_FORMAT_WHOLE_NUMBERS_H_

#ifndef BASE_COMMAND_LINE_EDIT_DISTANCE_H_
#define BASE_COMMAND_LINE_EDIT_DISTANCE_H_

#include <cstddef>
#include <string>

namespace mjp::app {

// Letters to change, add, remove or swap with the next one to turn a into b.
size_t EditDistance(const std::string& a, const std::string& b);

}  // namespace mjp::app

#endif  // BASE_COMMAND_LINE_EDIT_DISTANCE_H_

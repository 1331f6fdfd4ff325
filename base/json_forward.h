#ifndef BASE_JSON_FORWARD_H_
#define BASE_JSON_FORWARD_H_

#include <nlohmann/json_fwd.hpp>

// Json by name alone, for headers that pass it on: the library's own header takes the compiler a
// second in each file.
namespace mjp {

using Json = nlohmann::ordered_json;  // keeps the order of keys: cameras are numbered by it

}  // namespace mjp

#endif  // BASE_JSON_FORWARD_H_

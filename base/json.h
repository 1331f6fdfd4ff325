#ifndef BASE_JSON_H_
#define BASE_JSON_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json_forward.h"

namespace mjp {

struct JsonLimits {
  size_t bytes = size_t{1} << 20;
  int depth = 16;
};

// Parses one JSON text, stricter than the library: no byte order mark, NUL, duplicate key,
// non-finite number, trailing text or nesting beyond the limits. Throws Error "origin: what".
Json ParseJson(std::string_view text, const std::string& origin, const JsonLimits& limits = {});

// The same for a file.
Json ReadJson(const std::string& path, const JsonLimits& limits = {});

// The text of `json`, in UTF-8 whatever its strings hold: names of files may be any bytes, and what
// is not UTF-8 in them becomes U+FFFD. `indent` blanks a level; -1: one line.
std::string JsonText(const Json& json, int indent = -1);

// The double whose shortest decimal is that of `value`: 0.0001 rather than 9.9999997e-05.
double ShortestDouble(float value);

}  // namespace mjp

#endif  // BASE_JSON_H_

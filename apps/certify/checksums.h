#ifndef APPS_CERTIFY_CHECKSUMS_H_
#define APPS_CERTIFY_CHECKSUMS_H_

#include <map>
#include <string>

#include "apps/certify/verify.h"
#include "base/json.h"

namespace mjp::app {

// The values of `json` by their place: {"a": [5, {"b": 6}]} has "a/0": 5 and "a/1/b": 6. Empty
// lists and objects are null.
std::map<std::string, nlohmann::json> LeavesOf(const Json& json);

// Replaces what is not UTF-8 and appends two members. "fields": of each value, by its place, the
// first 8 digits of the SHA-256 of PLACE=VALUE. "checksum": the SHA-256 of all other members as
// JSON in one line without blanks, keys sorted. They tell edits by accident; who edits on purpose
// can write them anew, and only what is repeated tells that.
void AddChecksums(Json& certificate);

// One line for each value whose checksum is another, missing or of no value, and one for
// "checksum".
std::vector<Comparison> CompareChecksums(const Json& certificate);

}  // namespace mjp::app

#endif  // APPS_CERTIFY_CHECKSUMS_H_

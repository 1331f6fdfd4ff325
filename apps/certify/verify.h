#ifndef APPS_CERTIFY_VERIFY_H_
#define APPS_CERTIFY_VERIFY_H_

#include <string>
#include <vector>

#include "base/json.h"

namespace mjp::app {

enum class Verdict {
  kEqual,
  kWithin,       // not equal, and within what docs/NUMERICS.md allows
  kNotRepeated,  // of a build, a machine or a clock, or episodes left out: only its checksum holds
  kNotPromised,  // repeated and not equal, on another kind of processor, engine or GPU,
                 // or without the batch
  kDiffers,
};

// One line of a verification.
struct Comparison {
  std::string what;
  Verdict verdict;
  std::string text;
};

// What a certificate says and what was measured now, line by line. What can be derived from other
// members is: seeds, success, its interval and counts. `now` may have fewer episodes and timed
// decisions. Checksums are compared by CompareChecksums. Throws Json::exception where `stored` has
// not the form of a certificate.
std::vector<Comparison> CompareCertificates(const Json& stored, const Json& now);

// The same where nothing can be repeated on this machine: `files`, SHA-256 of the checkpoint's, and
// what can be derived from other members. Throws as CompareCertificates does.
std::vector<Comparison> CompareWithoutRepeating(const Json& stored, const Json& files);

// The last line of a verification of `stored` in which no line differs: "verified", or what is left
// to do.
std::string TextWhereNothingDiffers(const Json& stored, const std::vector<Comparison>& lines);

// "equal", "within tolerance", "not repeated", "not promised", "DIFFERS".
const char* VerdictName(Verdict verdict);

}  // namespace mjp::app

#endif  // APPS_CERTIFY_VERIFY_H_

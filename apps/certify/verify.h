#ifndef APPS_CERTIFY_VERIFY_H_
#define APPS_CERTIFY_VERIFY_H_

#include <string>
#include <vector>

#include "base/json.h"

namespace mjp::app {

enum class Verdict {
  kEqual,
  kWithin,       // not equal, and within what docs/NUMERICS.md allows
  kNotCompared,  // two figures side by side: of other builds or machines nothing is promised
  kDiffers,
};

// One line of a verification.
struct Comparison {
  std::string what;
  Verdict verdict;
  std::string text;
};

// What a certificate says and what was measured now, line by line. `now` may have fewer episodes.
std::vector<Comparison> CompareCertificates(const Json& stored, const Json& now);

// "equal", "within tolerance", "not compared", "DIFFERS".
const char* VerdictName(Verdict verdict);

}  // namespace mjp::app

#endif  // APPS_CERTIFY_VERIFY_H_

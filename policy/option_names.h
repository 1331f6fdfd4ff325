#ifndef POLICY_OPTION_NAMES_H_
#define POLICY_OPTION_NAMES_H_

#include <string>
#include <vector>

#include "policy/policy.h"

// The words for a policy's options, the same on every command line and in every model.

namespace mjp {

inline constexpr float kMostParallelTolerance = 10;

// Each parses one word and throws Error naming `option` and the words it knows.
Backend ParseBackend(const std::string& option, const std::string& word);      // auto cpu cuda
Precision ParsePrecision(const std::string& option, const std::string& word);  // auto fp32 tf32 ...
SamplerKind ParseSampler(const std::string& option,
                         const std::string& word);  // ddpm ddim euler rk4 onestep

// "W" or "W,tolerance" (a window of 0 to 1000 steps; 0: step by step) into `sampler`. Throws Error
// naming `option`.
void ParseParallel(const std::string& option, const std::string& text, SamplerOptions& sampler);

// The words, in the order of their values.
std::vector<std::string> BackendWords();
std::vector<std::string> PrecisionWords();
std::vector<std::string> SamplerWords();

const char* BackendName(Backend backend);
const char* PrecisionName(Precision precision);
const char* SamplerName(SamplerKind sampler);

}  // namespace mjp

#endif  // POLICY_OPTION_NAMES_H_

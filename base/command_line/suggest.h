#ifndef BASE_COMMAND_LINE_SUGGEST_H_
#define BASE_COMMAND_LINE_SUGGEST_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace mjp::app {

// The word of `known` that `word` was probably meant to be: one that begins with it, or one with
// few letters wrong, missing, added or swapped. Empty if none is near.
std::string NearestWord(const std::string& word, const std::vector<std::string>& known);

// "; did you mean <word>?", or nothing.
std::string DidYouMean(const std::string& word, const std::vector<std::string>& known);

// An option's check: one of `words`.
CLI::Validator OneOf(const std::vector<std::string>& words);

}  // namespace mjp::app

#endif  // BASE_COMMAND_LINE_SUGGEST_H_

#include "base/command_line/suggest.h"

#include <algorithm>

#include "base/command_line/edit_distance.h"

namespace mjp::app {
namespace {

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

}  // namespace

std::string NearestWord(const std::string& word, const std::vector<std::string>& known) {
  std::string nearest;
  // a third of the letters may be wrong
  size_t least = (word.size() - std::min<size_t>(word.find_first_not_of('-'), word.size())) / 3 + 1;
  for (const std::string& candidate : known) {
    if (word.size() > 3 && candidate.starts_with(word)) return candidate;
    const size_t distance = EditDistance(word, candidate);
    if (distance >= std::min(least, candidate.size())) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = NearestWord(word, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

CLI::Validator OneOf(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& word) {
    if (std::ranges::find(words, word) != words.end()) return std::string();
    return word + " not in {" + Joined(words) + "}" + DidYouMean(word, words);
  };
  return CLI::Validator("{" + Joined(words) + "}").operation(check);
}

}  // namespace mjp::app

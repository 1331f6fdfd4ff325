#include "base/command_line/suggest.h"

#include <algorithm>
#include <limits>

namespace mjp::app {
namespace {

// Letters to change, add, remove or swap with the next one to turn a into b.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

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

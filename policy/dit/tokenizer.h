#ifndef POLICY_DIT_TOKENIZER_H_
#define POLICY_DIT_TOKENIZER_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_forward.h"

namespace mjp {

// CLIP's tokenizer: byte-level pairs (BPE) of the lower-cased text, each word's last symbol with
// "</w>". Arithmetic of transformers' CLIPTokenizer, from the same two files.
class Tokenizer {
 public:
  // vocab.json {"symbol": id, ...} and the text of merges.txt, one pair a line, best first. Throws
  // Error that starts with `origin` for files that are not of one such tokenizer, and for a
  // vocabulary with a symbol that no pair makes.
  Tokenizer(const Json& vocabulary, std::string_view merges, const std::string& origin);

  // Ids of `text`: start, symbols, end; no padding. Throws Error for more than `most` ids, for what
  // is no UTF-8, and for a character whose class is not known here: ASCII, Latin, Greek, Cyrillic,
  // Chinese, Japanese and Korean letters and the usual signs are.
  std::vector<int> Encode(const std::string& text, int most) const;

  int start() const { return start_; }
  int end() const { return end_; }
  // One more than the largest id.
  int size() const { return size_; }

 private:
  void CheckMerges(const std::string& origin) const;
  // Appends the ids of one word.
  void EncodeWord(std::string_view word, std::vector<int>& ids) const;

  std::map<std::string, int, std::less<>> ids_;
  std::map<std::pair<std::string, std::string>, int> ranks_;
  int start_ = 0, end_ = 0, size_ = 0;
};

}  // namespace mjp

#endif  // POLICY_DIT_TOKENIZER_H_

#include "policy/dit/tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "policy/dit/unicode.h"

namespace mjp {
namespace {

constexpr char kStart[] = "<|startoftext|>", kEnd[] = "<|endoftext|>", kWordEnd[] = "</w>";
constexpr int kMostIds = 1 << 20;
constexpr size_t kMostText = 4096;  // bytes of an instruction

// A printable character for every byte, as GPT-2 has them: printable bytes stand for themselves,
// the others follow from 256 on.
std::array<std::string, 256> ByteSymbols() {
  std::array<std::string, 256> symbols;
  char32_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    symbols[byte] = EncodeUtf8(printable ? static_cast<char32_t>(byte) : next++);
  }
  return symbols;
}

Error UnknownCharacter(char32_t character) {
  char code[16];
  std::snprintf(code, sizeof code, "U+%04X", static_cast<unsigned>(character));
  return BadInput("the text has the character " + EncodeUtf8(character) + " (" + code +
                  "), whose kind is not known here: write it with others, best in ASCII");
}

// The part of `text` from `begin` that is one word for the pairs:
//   's|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+
size_t WordLength(std::u32string_view text) {
  for (const std::u32string_view ending : {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"}) {
    if (text.starts_with(ending)) return ending.size();
  }
  const CharacterClass kind = ClassOf(text[0]);
  if (kind == CharacterClass::kNumber) return 1;
  size_t length = 1;
  while (length < text.size() && ClassOf(text[length]) == kind) ++length;
  return length;
}

// Throws Error for two symbols of one id.
void CheckDistinct(const std::map<std::string, int, std::less<>>& ids, const std::string& origin) {
  std::map<int, std::string> symbols;
  for (const auto& [symbol, id] : ids) {
    const auto [other, fresh] = symbols.emplace(id, symbol);
    if (fresh) continue;
    throw BadInput(origin + ": vocab.json gives \"" + other->second + "\" and \"" + symbol +
                   "\" the id " + std::to_string(id) + ": the file is damaged");
  }
}

}  // namespace

Tokenizer::Tokenizer(const Json& vocabulary, std::string_view merges, const std::string& origin) {
  if (!vocabulary.is_object()) throw BadInput(origin + ": vocab.json must be an object");
  for (const auto& [symbol, id] : vocabulary.items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= kMostIds) {
      throw BadInput(origin + ": vocab.json: the id of \"" + symbol + "\" is " + id.dump() +
                     ", which is none");
    }
    ids_[symbol] = id.get<int>();
    size_ = std::max(size_, id.get<int>() + 1);
  }
  for (const auto& [symbol, id] : {std::pair{kStart, &start_}, std::pair{kEnd, &end_}}) {
    const auto found = ids_.find(symbol);
    if (found == ids_.end()) {
      throw BadInput(origin + ": vocab.json lacks \"" + symbol + "\": it is not of CLIP's kind");
    }
    *id = found->second;
  }
  for (int line = 1; !merges.empty(); ++line) {
    const size_t length = std::min(merges.find('\n'), merges.size());
    std::string_view pair = merges.substr(0, length);
    merges.remove_prefix(std::min(length + 1, merges.size()));
    if (pair.ends_with('\r')) pair.remove_suffix(1);
    if (pair.empty() || pair.starts_with("#version")) continue;
    const size_t space = pair.find(' ');
    const std::string first(pair.substr(0, space));
    const std::string second(space < pair.size() ? pair.substr(space + 1) : "");
    if (first.empty() || second.empty() || !ids_.contains(first + second)) {
      throw BadInput(origin + ": line " + std::to_string(line) + " of merges.txt joins \"" + first +
                     "\" and \"" + second + "\", which vocab.json does not have: the two files " +
                     "are not of one tokenizer");
    }
    ranks_.emplace(std::pair{first, second}, static_cast<int>(ranks_.size()));
  }
  CheckDistinct(ids_, origin);
  CheckMerges(origin);
}

// A merges.txt that is cut at the end of a line would break words into other pieces.
void Tokenizer::CheckMerges(const std::string& origin) const {
  std::set<std::string> made = {kStart, kEnd};
  for (const std::string& symbol : ByteSymbols()) made.insert({symbol, symbol + kWordEnd});
  for (const auto& [pair, rank] : ranks_) made.insert(pair.first + pair.second);
  for (const auto& [symbol, id] : ids_) {
    if (made.contains(symbol)) continue;
    throw BadInput(origin + ": vocab.json has \"" + symbol + "\", which no line of merges.txt " +
                   "makes: merges.txt is cut, or of another tokenizer");
  }
}

void Tokenizer::EncodeWord(std::string_view word, std::vector<int>& ids) const {
  static const std::array<std::string, 256> kSymbols = ByteSymbols();
  std::vector<std::string> symbols;
  for (const char byte : word) symbols.push_back(kSymbols[static_cast<uint8_t>(byte)]);
  symbols.back() += kWordEnd;
  for (;;) {  // the best pair, everywhere
    int best = std::numeric_limits<int>::max();
    std::pair<std::string, std::string> pair;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks_.find({symbols[i], symbols[i + 1]});
      if (found == ranks_.end() || found->second >= best) continue;
      best = found->second;
      pair = found->first;
    }
    if (best == std::numeric_limits<int>::max()) break;
    std::vector<std::string> joined;
    for (size_t i = 0; i < symbols.size(); ++i) {
      const bool both =
          i + 1 < symbols.size() && symbols[i] == pair.first && symbols[i + 1] == pair.second;
      joined.push_back(both ? symbols[i] + symbols[i + 1] : symbols[i]);
      i += both ? 1 : 0;
    }
    symbols = std::move(joined);
  }
  for (const std::string& symbol : symbols) {
    const auto found = ids_.find(symbol);
    if (found == ids_.end()) {
      throw BadInput("the vocabulary has no \"" + symbol + "\": vocab.json is not complete");
    }
    ids.push_back(found->second);
  }
}

std::vector<int> Tokenizer::Encode(const std::string& text, int most) const {
  if (text.size() > kMostText) {
    throw BadInput("the text has " + std::to_string(text.size()) + " bytes; shorten it to " +
                   std::to_string(kMostText));
  }
  if (text.find(kStart) != std::string::npos || text.find(kEnd) != std::string::npos) {
    throw BadInput(std::string("the text holds ") + kStart + " or " + kEnd +
                   ", which only the tokenizer may place: remove it");
  }
  std::u32string characters = DecodeUtf8(text);
  for (char32_t& c : characters) {
    if (ClassOf(c) == CharacterClass::kUnknown) throw UnknownCharacter(c);
    c = Lowered(c);
  }
  std::vector<int> ids = {start_};
  for (std::u32string_view rest = characters; !rest.empty();) {
    if (ClassOf(rest[0]) == CharacterClass::kSpace) {
      rest.remove_prefix(1);
      continue;
    }
    const size_t length = WordLength(rest);
    std::string word;
    for (const char32_t c : rest.substr(0, length)) word += EncodeUtf8(c);
    EncodeWord(word, ids);
    rest.remove_prefix(length);
  }
  ids.push_back(end_);
  if (ids.size() > static_cast<size_t>(most)) {
    throw BadInput("the text has " + std::to_string(ids.size()) + " tokens, and the policy reads " +
                   std::to_string(most) + ": shorten it");
  }
  return ids;
}

}  // namespace mjp

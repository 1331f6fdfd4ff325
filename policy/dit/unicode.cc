#include "policy/dit/unicode.h"

#include "base/error.h"

namespace mjp {
namespace {

struct Range {
  char32_t first, last;
  CharacterClass kind;
};

// what \s, \p{L} and \p{N} say of the characters; all are their own normal form
constexpr Range kRanges[] = {
    {0x09, 0x0D, CharacterClass::kSpace},      {0x20, 0x20, CharacterClass::kSpace},
    {0x21, 0x2F, CharacterClass::kOther},      {'0', '9', CharacterClass::kNumber},
    {0x3A, 0x40, CharacterClass::kOther},      {'A', 'Z', CharacterClass::kLetter},
    {0x5B, 0x60, CharacterClass::kOther},      {'a', 'z', CharacterClass::kLetter},
    {0x7B, 0x7E, CharacterClass::kOther},      {0xA0, 0xA0, CharacterClass::kSpace},
    {0xA1, 0xA9, CharacterClass::kOther},      {0xAB, 0xAC, CharacterClass::kOther},
    {0xAE, 0xB1, CharacterClass::kOther},      {0xB4, 0xB4, CharacterClass::kOther},
    {0xB6, 0xB8, CharacterClass::kOther},      {0xBB, 0xBB, CharacterClass::kOther},
    {0xBF, 0xBF, CharacterClass::kOther},      {0xC0, 0xD6, CharacterClass::kLetter},
    {0xD7, 0xD7, CharacterClass::kOther},      {0xD8, 0xF6, CharacterClass::kLetter},
    {0xF7, 0xF7, CharacterClass::kOther},      {0xF8, 0x12F, CharacterClass::kLetter},
    {0x131, 0x17F, CharacterClass::kLetter},   {0x391, 0x3A1, CharacterClass::kLetter},
    {0x3A3, 0x3CE, CharacterClass::kLetter},   {0x400, 0x45F, CharacterClass::kLetter},
    {0x2010, 0x2027, CharacterClass::kOther},  {0x2030, 0x205E, CharacterClass::kOther},
    {0x3000, 0x3000, CharacterClass::kSpace},  {0x3001, 0x3003, CharacterClass::kOther},
    {0x3008, 0x3011, CharacterClass::kOther},  {0x3041, 0x3096, CharacterClass::kLetter},
    {0x30A1, 0x30FA, CharacterClass::kLetter}, {0x4E00, 0x9FFC, CharacterClass::kLetter},
    {0xAC00, 0xD7A3, CharacterClass::kLetter}, {0xFF01, 0xFF0F, CharacterClass::kOther},
};

}  // namespace

CharacterClass ClassOf(char32_t character) {
  for (const Range& range : kRanges) {
    if (character >= range.first && character <= range.last) return range.kind;
  }
  return CharacterClass::kUnknown;
}

char32_t Lowered(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (within('A', 'Z') || (within(0xC0, 0xDE) && c != 0xD7)) return c + 0x20;
  if (within(0x100, 0x137) || within(0x14A, 0x177)) return c % 2 == 0 ? c + 1 : c;
  if (within(0x139, 0x148) || within(0x179, 0x17E)) return c % 2 == 1 ? c + 1 : c;
  if (c == 0x178) return 0xFF;
  if (within(0x391, 0x3AB) || within(0x410, 0x42F)) return c + 0x20;
  if (within(0x400, 0x40F)) return c + 0x50;
  return c;
}

std::u32string DecodeUtf8(std::string_view text) {
  std::u32string characters;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const int more = lead < 0x80             ? 0
                     : (lead & 0xE0) == 0xC0 ? 1
                     : (lead & 0xF0) == 0xE0 ? 2
                     : (lead & 0xF8) == 0xF0 ? 3
                                             : -1;
    char32_t character = more <= 0 ? lead : lead & (0x3F >> more);
    bool valid = more >= 0 && i + more < text.size();
    for (int k = 1; valid && k <= more; ++k) {
      const auto next = static_cast<uint8_t>(text[i + k]);
      valid = (next & 0xC0) == 0x80;
      character = character << 6 | (next & 0x3F);
    }
    constexpr char32_t kLeast[] = {0, 0x80, 0x800, 0x10000};  // shorter forms are not allowed
    if (!valid || character < kLeast[more] || character > 0x10FFFF ||
        (character >= 0xD800 && character < 0xE000)) {
      throw BadInput("the text is not UTF-8 at byte " + std::to_string(i) +
                     ": write it in that encoding");
    }
    characters += character;
    i += more + 1;
  }
  return characters;
}

std::string EncodeUtf8(char32_t c) {
  const auto part = [](char32_t bits) { return static_cast<char>(bits); };
  if (c < 0x80) return {part(c)};
  if (c < 0x800) return {part(0xC0 | c >> 6), part(0x80 | (c & 0x3F))};
  if (c < 0x10000) {
    return {part(0xE0 | c >> 12), part(0x80 | (c >> 6 & 0x3F)), part(0x80 | (c & 0x3F))};
  }
  return {part(0xF0 | c >> 18), part(0x80 | (c >> 12 & 0x3F)), part(0x80 | (c >> 6 & 0x3F)),
          part(0x80 | (c & 0x3F))};
}

}  // namespace mjp

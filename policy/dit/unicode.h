#ifndef POLICY_DIT_UNICODE_H_
#define POLICY_DIT_UNICODE_H_

#include <cstdint>
#include <string>
#include <string_view>

// As much of Unicode as a tokenizer of instructions asks for. What is not known is said to be so,
// never guessed.

namespace mjp {

enum class CharacterClass { kSpace, kLetter, kNumber, kOther, kUnknown };

// kUnknown for characters outside the common scripts, and for those that Unicode's normal form
// (NFC) would join with others or replace.
CharacterClass ClassOf(char32_t character);

// The small letter of a capital one, else the character itself.
char32_t Lowered(char32_t character);

// The characters of UTF-8. Throws Error for any other bytes.
std::u32string DecodeUtf8(std::string_view text);

std::string EncodeUtf8(char32_t character);

}  // namespace mjp

#endif  // POLICY_DIT_UNICODE_H_

#ifndef BASE_SHA256_H_
#define BASE_SHA256_H_

#include <cstdint>
#include <span>
#include <string>

namespace mjp {

// SHA-256 (FIPS 180-4) of `bytes` as 64 lower-case hexadecimal digits.
std::string Sha256(std::span<const uint8_t> bytes);

}  // namespace mjp

#endif  // BASE_SHA256_H_

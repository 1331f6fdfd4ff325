#ifndef DATASETS_PICTURES_PNG_H_
#define DATASETS_PICTURES_PNG_H_

#include <span>
#include <string>
#include <vector>

#include "datasets/pictures/picture.h"

namespace mjp::datasets {

// Decodes a PNG file to 8 bits of RGB: the values that the file has, whatever it says of its gamma.
// Throws Error "where: what" if it is damaged, larger than 64 million pixels or of 16 bits.
Picture DecodePng(std::span<const uint8_t> bytes, const std::string& where);

// A PNG file of 8 bits of RGB that holds the picture exactly.
std::vector<uint8_t> EncodePng(const Picture& picture);

}  // namespace mjp::datasets

#endif  // DATASETS_PICTURES_PNG_H_

#ifndef DATASETS_PICTURES_PNG_H_
#define DATASETS_PICTURES_PNG_H_

#include <span>
#include <string>
#include <vector>

#include "datasets/pictures/picture.h"

namespace mjp::datasets {

// Decodes a PNG file of any kind to 8 bits of RGB. Throws Error "where: what" if it is damaged or
// larger than 64 million pixels.
Picture DecodePng(std::span<const uint8_t> bytes, const std::string& where);

// A PNG file of 8 bits of RGB that holds the picture exactly.
std::vector<uint8_t> EncodePng(const Picture& picture);

}  // namespace mjp::datasets

#endif  // DATASETS_PICTURES_PNG_H_

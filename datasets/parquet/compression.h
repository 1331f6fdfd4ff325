#ifndef DATASETS_PARQUET_COMPRESSION_H_
#define DATASETS_PARQUET_COMPRESSION_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "datasets/parquet/metadata.h"

namespace mjp::parquet {

// The `size` bytes that were compressed into `bytes`. Throws Error "where: what" unless exactly as
// many come out; never has memory for more.
std::vector<uint8_t> Decompress(Codec codec, std::span<const uint8_t> bytes, size_t size,
                                const std::string& where);

// The same bytes by Snappy.
std::vector<uint8_t> CompressSnappy(std::span<const uint8_t> bytes);

}  // namespace mjp::parquet

#endif  // DATASETS_PARQUET_COMPRESSION_H_

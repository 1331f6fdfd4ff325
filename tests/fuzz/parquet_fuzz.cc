#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "base/error.h"
#include "datasets/parquet/reader.h"

// Any bytes are a Parquet file whose columns have the rows that it claims, or refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = [&](uint64_t offset, uint64_t count) {
    if (offset > size || count > size - offset) throw mjp::BadInput("fuzz: too short");
    return std::vector<uint8_t>(data + offset, data + offset + count);
  };
  try {
    const mjp::parquet::Reader reader(read, size, "fuzz");
    for (const mjp::parquet::Leaf& leaf : reader.metadata().leaves) {
      try {
        const auto column = reader.ReadAll(leaf, mjp::parquet::Nulls::kEmpty);
        if (static_cast<int64_t>(column.rows()) != reader.metadata().rows) std::terminate();
        if (column.offsets.back() != column.values.size()) std::terminate();
        size_t bytes = 0;
        for (const std::string_view text : column.values.texts) {
          for (const char c : text) bytes += static_cast<unsigned char>(c);
        }
        volatile size_t sink = bytes;
        static_cast<void>(sink);
      } catch (const mjp::Error&) {
      }
    }
  } catch (const mjp::Error&) {
  }
  return 0;
}

#ifndef DATASETS_PARQUET_PAGES_H_
#define DATASETS_PARQUET_PAGES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "datasets/parquet/encodings.h"
#include "datasets/parquet/metadata.h"

namespace mjp::parquet {

// Reads `count` bytes of a file from `offset` on; throws Error where there are fewer.
using ReadAt = std::function<std::vector<uint8_t>(uint64_t offset, uint64_t count)>;

struct PageHeader {
  PageType type = PageType::kData;
  Encoding encoding = Encoding::kPlain;
  int values = 0;           // with nulls and empty lists
  int size = 0;             // bytes in the file, after the header
  int uncompressed = 0;     // bytes
  int level_bytes[2] = {};  // of a page of version 2: repetition, definition
  bool compressed = true;   // of a page of version 2: its values are
  std::optional<uint32_t> checksum;
};

// A page as it is in memory: an entry per value, null and empty list.
struct Page {
  std::vector<uint8_t> bytes;        // what texts point into
  std::vector<uint32_t> repetition;  // empty where all are 0
  std::vector<uint32_t> definition;  // empty where all are there
  Values values;                     // those that are there
};

// Walks over the pages of a column chunk. Every number in a header is checked before it is used;
// memory is that of one page.
class PageWalk {
 public:
  // `where` names file and column in errors. The arguments must outlive the walk.
  PageWalk(const ReadAt& read, const ColumnChunk& chunk, const Leaf& leaf,
           const std::string& where);

  // The next data page's header, or nothing after the last. Reads a dictionary on the way.
  std::optional<PageHeader> Next();
  // Reads the page that Next returned.
  Page Read(const PageHeader& header);
  // The dictionary's bytes, which texts of pages may point into.
  std::vector<uint8_t> TakeDictionaryBytes() { return std::move(dictionary_bytes_); }

 private:
  PageHeader ParseHeader(std::span<const uint8_t> bytes, uint64_t& size) const;
  PageHeader ReadHeader();
  std::vector<uint8_t> Body(const PageHeader& header) const;
  void ReadDictionary(const PageHeader& header);
  void ReadLevels(const PageHeader& header, ByteCursor& cursor, Page& page) const;

  const ReadAt& read_;
  const ColumnChunk& chunk_;
  const Leaf& leaf_;
  const std::string& where_;
  uint64_t position_ = 0;  // in the chunk, of the next header
  uint64_t body_ = 0;      // of the last header's page
  int64_t values_ = 0;     // in the pages so far
  bool has_dictionary_ = false;
  Values dictionary_;
  std::vector<uint8_t> dictionary_bytes_;
};

}  // namespace mjp::parquet

#endif  // DATASETS_PARQUET_PAGES_H_

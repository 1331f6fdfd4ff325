// The Parquet reader against files that pyarrow wrote, the writer against the reader and pyarrow,
// and both against damage.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "datasets/parquet/encodings.h"
#include "datasets/parquet/reader.h"
#include "datasets/parquet/writer.h"
#include "tests/support/npz.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"

namespace mjp::parquet {
namespace {

using ::testing::HasSubstr;

Column ReadColumn(const Reader& reader, const std::string& name, const std::string& rest = "") {
  const Leaf* leaf = reader.Find(name, rest);
  if (leaf == nullptr) throw BadInput("no column " + name);
  return reader.ReadAll(*leaf);
}

TEST(ParquetTest, ReadsLeRobotsNumbersBitForBit) {
  for (const std::string set : {"image", "video"}) {
    SHARED_OR_SKIP(file, "datasets/" + set + "/data/chunk-000/file-000.parquet");
    const std::string expected = mjp_test::SharedPath("datasets/" + set + "_expected.npz");
    const Reader reader(file);
    EXPECT_EQ(reader.metadata().groups.size(), 3u);
    for (const std::string name : {"observation.state", "action", "timestamp"}) {
      const auto want = mjp_test::ReadNpz(expected, name).ToDoubles();
      const Column got = ReadColumn(reader, name);
      ASSERT_EQ(got.values.numbers.size(), want.size()) << name;
      EXPECT_EQ(got.values.numbers, want) << name;
      EXPECT_EQ(got.rows(), 36u);
      EXPECT_EQ(got.offsets[7], 7 * want.size() / 36) << name;
    }
    for (const std::string name : {"frame_index", "episode_index", "index", "task_index"}) {
      const auto want = mjp_test::ReadNpz(expected, name).ToIntegers(name);
      EXPECT_EQ(ReadColumn(reader, name).values.ints, want) << name;
    }
    const Column done = ReadColumn(reader, "next.done");
    EXPECT_EQ(std::count(done.values.ints.begin(), done.values.ints.end(), 1), 3);
  }
}

TEST(ParquetTest, ReadsNestedListsAndTexts) {
  SHARED_OR_SKIP(file, "datasets/video/meta/episodes/chunk-000/file-000.parquet");
  const Reader reader(file);
  const Column tasks = ReadColumn(reader, "tasks");
  ASSERT_EQ(tasks.rows(), 3u);
  EXPECT_EQ(tasks.values.texts[0], "push the T");
  EXPECT_EQ(tasks.values.texts[2], "other");
  const Column mean = ReadColumn(reader, "stats/observation.images.top/mean");
  EXPECT_EQ(mean.offsets, (std::vector<uint64_t>{0, 3, 6, 9}));
  for (const double value : mean.values.numbers) EXPECT_TRUE(value > 0 && value < 1) << value;
}

TEST(ParquetTest, ReadsAPartAsItReadsTheWhole) {
  SHARED_OR_SKIP(file, "datasets/image/data/chunk-000/file-000.parquet");
  const Reader reader(file);
  for (const auto& [name, rest] : {std::pair("action", ""), {"observation.images.top", "bytes"}}) {
    const Leaf* leaf = reader.Find(name, rest);
    ASSERT_NE(leaf, nullptr);
    const Column whole = reader.ReadAll(*leaf), part = reader.Read(*leaf, 10, 5);
    ASSERT_EQ(part.rows(), 5u);
    const size_t per_row = whole.values.size() / 36;
    for (size_t i = 0; i < 5 * per_row; ++i) {
      if (whole.type == Type::kBytes) {
        EXPECT_EQ(part.values.texts[i], whole.values.texts[10 * per_row + i]);
        EXPECT_EQ(part.values.texts[i].substr(1, 3), "PNG");
      } else {
        EXPECT_EQ(part.values.numbers[i], whole.values.numbers[10 * per_row + i]);
      }
    }
    EXPECT_THROW(reader.Read(*leaf, 30, 7), Error);
  }
}

// Columns of each kind that LeRobot has, three rows and then two.
class WrittenTable {
 public:
  WrittenTable() {
    std::vector<uint8_t> bytes = Writer::Begin();
    for (const auto& group : {First(), Second()}) {
      const auto rows = static_cast<int64_t>(group[0].values.size());
      const std::vector<uint8_t> more = writer_.AddRowGroup(rows, group);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    const std::vector<uint8_t> footer = writer_.Footer();
    bytes.insert(bytes.end(), footer.begin(), footer.end());
    bytes_ = bytes;
  }

  std::vector<LeafValues> First() const {
    std::vector<LeafValues> leaves(10);
    leaves[0].values.ints = {1, 0, 1};
    leaves[1].values.ints = {0, -1, std::numeric_limits<int64_t>::max()};
    leaves[2].values.numbers = {0.5f, -0.0f, std::numeric_limits<float>::min()};
    leaves[3].values.numbers = {0.1, 1e300, 5e-324};
    leaves[4].values.texts = {"", "push the T", "\xC3\xA4"};
    leaves[5] = {{{}, {1, 2, 3, 4, 5, 6}, {}}, {0, 2, 4, 6}, {}};
    leaves[6] = {{{}, {}, {"a", "b", "c"}}, {0, 2, 2, 3}, {}};
    leaves[7].values.numbers.resize(9);
    for (size_t i = 0; i < 9; ++i) leaves[7].values.numbers[i] = static_cast<double>(i) / 7;
    leaves[7].offsets = {0, 3, 6, 9};
    leaves[7].inner = {1, 1};
    leaves[8].values.texts = {std::string_view("\x89PNG\0x", 6), "y", "z"};
    leaves[9].values.texts = {"frame-000000.png", "frame-000001.png", "frame-000002.png"};
    return leaves;
  }

  std::vector<LeafValues> Second() const {
    std::vector<LeafValues> leaves = First();
    for (LeafValues& leaf : leaves) {
      const size_t per_row = leaf.offsets.empty() ? 1 : leaf.offsets[2] / 2;
      if (!leaf.offsets.empty()) leaf.offsets.pop_back();
      const size_t count = leaf.offsets.empty() ? 2 * per_row : leaf.offsets.back();
      leaf.values.ints.resize(std::min(count, leaf.values.ints.size()));
      leaf.values.numbers.resize(std::min(count, leaf.values.numbers.size()));
      leaf.values.texts.resize(std::min(count, leaf.values.texts.size()));
    }
    return leaves;
  }

  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  Writer writer_ = Writer({{.name = "next.done", .type = Type::kBool},
                           {.name = "index", .type = Type::kInt64},
                           {.name = "timestamp", .type = Type::kFloat},
                           {.name = "from", .type = Type::kDouble},
                           {.name = "task", .type = Type::kBytes, .text = true},
                           {.name = "action", .type = Type::kFloat, .lists = 1},
                           {.name = "tasks", .type = Type::kBytes, .text = true, .lists = 1},
                           {.name = "stats/top/mean", .type = Type::kDouble, .lists = 3},
                           {.name = "top", .picture = true}},
                          {{"pandas", "{}"}});
  std::vector<uint8_t> bytes_;
};

Reader OfBytes(const std::vector<uint8_t>& bytes) {
  return Reader(
      [&bytes](uint64_t offset, uint64_t count) {
        if (offset > bytes.size() || count > bytes.size() - offset) throw BadInput("x: too short");
        const auto begin = bytes.begin() + static_cast<ptrdiff_t>(offset);
        return std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(count));
      },
      bytes.size(), "x");
}

TEST(ParquetTest, ReadsBackWhatItWrote) {
  const WrittenTable table;
  const Reader reader = OfBytes(table.bytes());
  EXPECT_EQ(reader.metadata().rows, 5);
  EXPECT_EQ(reader.metadata().key_values.at("pandas"), "{}");
  const auto first = table.First(), second = table.Second();
  for (size_t i = 0; i < first.size(); ++i) {
    const Leaf& leaf = reader.metadata().leaves.at(i);
    SCOPED_TRACE(leaf.Name());
    const Column column = reader.ReadAll(leaf);
    const auto join = [](auto a, const auto& b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    EXPECT_EQ(column.values.ints, join(first[i].values.ints, second[i].values.ints));
    EXPECT_EQ(column.values.numbers, join(first[i].values.numbers, second[i].values.numbers));
    EXPECT_EQ(column.values.texts, join(first[i].values.texts, second[i].values.texts));
    if (first[i].offsets.empty()) continue;
    EXPECT_TRUE(
        std::equal(first[i].offsets.begin(), first[i].offsets.end(), column.offsets.begin()));
  }
}

TEST(ParquetTest, LongColumnsHaveManyPages) {
  constexpr int64_t kRows = 700000;
  LeafValues leaf;
  for (int64_t i = 0; i < kRows; ++i) leaf.values.numbers.push_back(static_cast<double>(i) * 0.5);
  Writer writer({{.name = "x", .type = Type::kDouble}}, {});
  std::vector<uint8_t> bytes = Writer::Begin();
  for (const auto& part : {writer.AddRowGroup(kRows, std::array{leaf}), writer.Footer()}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  const Reader reader = OfBytes(bytes);
  EXPECT_EQ(ReadColumn(reader, "x").values.numbers, leaf.values.numbers);
  const Column part = reader.Read(*reader.Find("x"), 400000, 2);
  EXPECT_EQ(part.values.numbers, (std::vector<double>{200000, 200000.5}));
}

// Each byte in turn is changed: whatever is still accepted has columns of the rows it claims.
TEST(ParquetTest, DamageIsAnErrorOrHarmless) {
  const WrittenTable table;
  int refused = 0;
  for (size_t at = 0; at < table.bytes().size(); ++at) {
    std::vector<uint8_t> bytes = table.bytes();
    bytes[at] ^= 0x15;
    try {
      const Reader reader = OfBytes(bytes);
      for (const Leaf& leaf : reader.metadata().leaves) {
        const Column column = reader.ReadAll(leaf, Nulls::kEmpty);
        EXPECT_EQ(static_cast<int64_t>(column.rows()), reader.metadata().rows);
        EXPECT_EQ(column.offsets.back(), column.values.size());
      }
    } catch (const Error& error) {
      ++refused;
      EXPECT_THAT(error.what(), HasSubstr("x: "));
    }
  }
  EXPECT_GT(refused, static_cast<int>(table.bytes().size() / 2));
  for (size_t size = 0; size < table.bytes().size(); ++size) {
    const std::vector<uint8_t> cut(table.bytes().begin(),
                                   table.bytes().begin() + static_cast<ptrdiff_t>(size));
    EXPECT_THROW(OfBytes(cut), Error) << size;
  }
}

TEST(ParquetTest, APageIsHeldAgainstItsChecksum) {
  const WrittenTable table;
  std::vector<uint8_t> bytes = table.bytes();
  const auto text =
      std::search(bytes.begin(), bytes.end(), std::begin("push the T"), std::end("push the T") - 1);
  ASSERT_NE(text, bytes.end());
  *text = 'P';
  const Reader reader = OfBytes(bytes);
  try {
    ReadColumn(reader, "task");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"task\": a page differs from its checksum"));
  }
}

// A Python that has pyarrow, or "".
std::string PythonWithPyarrow() {
  const char* python = std::getenv("MJPOLICY_PYTHON");
  const std::string program = python ? python : "python3";
  const bool has = std::system((program + " -c 'import pyarrow' 2>/dev/null").c_str()) == 0;
  return has ? program : "";
}

#define PYARROW_OR_SKIP(program)                                                           \
  const std::string program = PythonWithPyarrow();                                         \
  if (program.empty()) {                                                                   \
    GTEST_SKIP() << "no pyarrow: set MJPOLICY_PYTHON to the name of a Python that has it"; \
  }

TEST(ParquetTest, ReadsPyarrowsOtherForms) {
  PYARROW_OR_SKIP(program);
  const mjp_test::TempDir folder;
  const std::string script = folder.Write("make.py", R"(
import itertools, sys
import pyarrow as pa, pyarrow.parquet as pq
n = 3000
t = pa.table({
  "b": pa.array([i % 3 == 0 for i in range(n)]),
  "i": pa.array([i * i - 7 for i in range(n)], pa.int32()),
  "l": pa.array([[float(j) / 4 for j in range(i % 4)] for i in range(n)], pa.list_(pa.float32())),
  "f": pa.array([[i + 0.5, -i] for i in range(n)], pa.list_(pa.float64(), 2)),
  "s": pa.array([None if i % 5 == 0 else "t%d" % (i % 9) for i in range(n)]),
})
for codec, version, dictionary in itertools.product(
    ["none", "snappy", "gzip", "zstd"], ["1.0", "2.0"], [True, False]):
  pq.write_table(t, f"{sys.argv[1]}/{codec}_{version}_{dictionary}.parquet", compression=codec,
                 data_page_version=version, use_dictionary=dictionary, row_group_size=1100,
                 data_page_size=2000, write_page_checksum=True)
pq.write_table(t, f"{sys.argv[1]}/refused.parquet", use_dictionary=False,
               column_encoding={"i": "DELTA_BINARY_PACKED"})
)");
  ASSERT_EQ(std::system((program + " " + script + " " + folder.path()).c_str()), 0);
  for (const std::string codec : {"none", "snappy", "gzip", "zstd"}) {
    for (const std::string form : {"1.0_True", "1.0_False", "2.0_True", "2.0_False"}) {
      const Reader reader(folder / (codec + "_" + form + ".parquet"));
      SCOPED_TRACE(reader.name());
      const Column b = ReadColumn(reader, "b"), i = ReadColumn(reader, "i");
      const Column l = ReadColumn(reader, "l"), f = ReadColumn(reader, "f");
      const Column s = reader.ReadAll(*reader.Find("s"), Nulls::kEmpty);
      ASSERT_EQ(s.rows(), 3000u);
      for (int64_t row = 0; row < 3000; ++row) {
        const auto at = static_cast<size_t>(row);
        ASSERT_EQ(b.values.ints[at], row % 3 == 0);
        ASSERT_EQ(i.values.ints[at], row * row - 7);
        ASSERT_EQ(l.offsets[at + 1] - l.offsets[at], at % 4);
        ASSERT_EQ(f.values.numbers[2 * at], static_cast<double>(row) + 0.5);
        ASSERT_EQ(s.values.texts[at], row % 5 == 0 ? "" : "t" + std::to_string(row % 9));
      }
      EXPECT_THROW(ReadColumn(reader, "s"), Error);
      EXPECT_EQ(reader.Read(*reader.Find("l"), 1500, 4).values.numbers.size(), 6u);
    }
  }
  const Reader refused(folder / "refused.parquet");
  try {
    ReadColumn(refused, "i");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("DELTA_BINARY_PACKED"));
  }
}

TEST(ParquetTest, IntegersWithoutASignAreRead) {
  const struct {
    const char* name;
    std::vector<uint8_t> described;  // fields of the schema's element, after its name
    int64_t value;                   // of 32 bits that are all set
  } rows[] = {{"nothing", {}, -1},
              {"UINT_32", {0x25, 0x1a}, 4294967295},
              {"INT_32", {0x25, 0x22}, -1},
              {"INTEGER(32, false)", {0x6c, 0xac, 0x13, 32, 0x12, 0, 0}, 4294967295},
              {"INTEGER(32, true)", {0x6c, 0xac, 0x13, 32, 0x11, 0, 0}, -1}};
  const std::vector<uint8_t> set(8, 0xff);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    // two elements: the root "s" with a child, and INT32 "n"; then no rows
    std::vector<uint8_t> footer = {0x29, 0x2c, 0x48, 1, 's', 0x15, 2, 0, 0x15, 2, 0x38, 1, 'n'};
    footer.insert(footer.end(), row.described.begin(), row.described.end());
    footer.insert(footer.end(), {0, 0x16, 0, 0});
    const std::string where = "test";
    Leaf leaf = ParseMetadata(footer, 4, where).leaves.at(0);
    Values values;
    ByteCursor cursor{set, where};
    ReadPlain(cursor, leaf, 2, values);
    EXPECT_EQ(values.ints, (std::vector<int64_t>{row.value, row.value}));
    if (row.value < 0) continue;
    leaf.type = Type::kInt64;
    cursor.bytes = set;
    EXPECT_THROW(ReadPlain(cursor, leaf, 1, values), Error);
  }
}

TEST(ParquetTest, PyarrowReadsTheSame) {
  PYARROW_OR_SKIP(program);
  const mjp_test::TempDir folder;
  const WrittenTable table;
  WriteFileAtomically(folder / "t.parquet", table.bytes());
  const std::string script = folder.Write("check.py", R"(
import sys
import pyarrow.parquet as pq
t = pq.read_table(sys.argv[1], page_checksum_verification=True)
d = t.to_pydict()
assert d["next.done"] == [True, False, True, True, False], d
assert d["index"] == [0, -1, 2**63 - 1, 0, -1], d
assert d["timestamp"] == [0.5, -0.0, 2.0**-126, 0.5, -0.0], d
assert d["from"] == [0.1, 1e300, 5e-324, 0.1, 1e300], d
assert d["task"] == ["", "push the T", "\u00e4", "", "push the T"], d
assert d["action"] == [[1, 2], [3, 4], [5, 6], [1, 2], [3, 4]], d
assert d["tasks"] == [["a", "b"], [], ["c"], ["a", "b"], []], d
want = [[[[(3 * r + c) / 7]] for c in range(3)] for r in (0, 1, 2, 0, 1)]
assert d["stats/top/mean"] == want, d
assert d["top"][0] == {"bytes": b"\x89PNG\0x", "path": "frame-000000.png"}, d
assert str(t.schema.field("top").type) == "struct<bytes: binary, path: string>", t.schema
assert str(t.schema.field("timestamp").type) == "float", t.schema
)");
  EXPECT_EQ(std::system((program + " " + script + " " + folder.path() + "/t.parquet").c_str()), 0);
}

}  // namespace
}  // namespace mjp::parquet

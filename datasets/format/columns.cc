#include "datasets/format/columns.h"

#include "base/error.h"

namespace mjp::datasets {
namespace {

// Whether a column's type is one that LeRobot's loader makes the feature's.
bool Fits(parquet::Type type, Kind kind) {
  using parquet::Type;
  switch (kind) {
    case Kind::kBool:
      return type == Type::kBool;
    case Kind::kInteger:
      return type == Type::kInt32 || type == Type::kInt64;
    case Kind::kFloat:
    case Kind::kDouble:
      return type == Type::kFloat || type == Type::kDouble;
    default:
      return type == Type::kBytes;
  }
}

}  // namespace

parquet::Column ReadColumn(const parquet::Reader& file, const Feature& feature, int64_t first,
                           int64_t count, const std::string& where) {
  const std::string what = where + ": \"" + feature.name + "\"";
  const parquet::Leaf* leaf = file.Find(feature.name, feature.kind == Kind::kImage ? "bytes" : "");
  if (leaf == nullptr || !Fits(leaf->type, feature.kind)) {
    throw BadInput(what + (leaf == nullptr ? " is not in the file" : " has another type") +
                   "; info.json says " + feature.dtype);
  }
  if (first + count > file.metadata().rows) {
    throw BadInput(what + ": ends at row " + std::to_string(first + count) + " of a file of " +
                   std::to_string(file.metadata().rows));
  }
  parquet::Column column;
  try {
    column = file.Read(*leaf, first, count);
  } catch (const Error& error) {  // knows of the file's rows alone
    std::string why = error.what();
    if (why.starts_with(file.name() + ": ")) why.erase(0, file.name().size() + 2);
    throw Error(error.code(), what + ": " + why);
  }
  const auto elements = feature.IsNumber() ? static_cast<uint64_t>(feature.Elements()) : 1;
  for (size_t i = 0; i < column.rows(); ++i) {
    if (column.offsets[i + 1] - column.offsets[i] != elements) {
      throw BadInput(what + ": row " + std::to_string(first + static_cast<int64_t>(i)) +
                     " has not the " + std::to_string(elements) + " values that info.json says");
    }
  }
  if (feature.kind == Kind::kFloat && column.type == parquet::Type::kDouble) {
    for (double& value : column.values.numbers) value = static_cast<float>(value);
  }
  return column;
}

}  // namespace mjp::datasets

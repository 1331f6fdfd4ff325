#ifndef DATASETS_FORMAT_COLUMNS_H_
#define DATASETS_FORMAT_COLUMNS_H_

#include <string>

#include "datasets/format/info.h"
#include "datasets/parquet/reader.h"

namespace mjp::datasets {

// Rows first ... first + count - 1 of a feature's column: each has as many values as the feature
// has elements; of an image, a PNG file. Throws Error "where: ..." where the column is missing or
// has another type or shape.
parquet::Column ReadColumn(const parquet::Reader& file, const Feature& feature, int64_t first,
                           int64_t count, const std::string& where);

}  // namespace mjp::datasets

#endif  // DATASETS_FORMAT_COLUMNS_H_

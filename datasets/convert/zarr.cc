// Diffusion Policy's replay buffers: zarr version 2, a folder per array with its chunks as files.
// https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html

#include <blosc.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/key_reader.h"
#include "datasets/convert/array_source.h"
#include "datasets/parquet/compression.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;

constexpr int kMostExtent = 2000000000;
constexpr uint64_t kLargestChunk = uint64_t{1} << 31;  // bytes
constexpr uint64_t kLargestFile = uint64_t{1} << 31;

// One array, chunked along its first axis.
class ZarrArray {
 public:
  explicit ZarrArray(const std::string& folder) : folder_(folder) {
    const std::string path = folder + "/.zarray";
    const Json json = ReadJson(path);
    KeyReader keys(json, path);
    if (keys.Int("zarr_format", 0, 100) != 2) throw keys.Bad("zarr_format", "is not 2");
    const std::vector<int> shape = keys.Ints("shape", 1, 5, 0, kMostExtent);
    const std::vector<int> chunks = keys.Ints("chunks", shape.size(), shape.size(), 1, kMostExtent);
    rows_ = shape[0];
    chunk_rows_ = chunks[0];
    for (size_t axis = 1; axis < shape.size(); ++axis) {
      shape_.push_back(shape[axis]);
      elements_ *= static_cast<uint64_t>(shape[axis]);
      if (chunks[axis] != shape[axis]) {
        throw keys.Bad("chunks", "splits more than the first axis, which is not read here");
      }
      if (elements_ > kLargestChunk) throw keys.Bad("shape", "is too large");
    }
    dtype_ = keys.Text("dtype");
    if (!Size()) throw keys.Bad("dtype", "is " + dtype_ + ", which is not read here");
    if (keys.Text("order", "C") != "C") throw keys.Bad("order", "is not C");
    if (keys.Has("filters")) throw keys.Bad("filters", "are not read here");
    if (const Json* compressor = keys.Find("compressor")) {
      compressor_ = KeyReader(*compressor, path + ": \"compressor\"").Text("id");
    }
    if (!std::ranges::count(std::initializer_list<std::string>{"", "blosc", "zlib", "gzip", "zstd"},
                            compressor_)) {
      throw keys.Bad("compressor", "is " + compressor_ + "; blosc, zlib, gzip and zstd are read");
    }
    if (ChunkBytes() > kLargestChunk) throw keys.Bad("chunks", "are too large");
  }

  int64_t rows() const { return rows_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  std::string Dtype() const {
    return dtype_ == "<f8"    ? "float64"
           : dtype_[1] == 'f' ? "float32"
           : dtype_[1] == 'b' ? "bool"
                              : "int64";
  }

  // Rows first ... first + count - 1.
  std::vector<double> Read(int64_t first, int64_t count) {
    if (first < 0 || count < 0 || first + count > rows_) {
      throw BadInput(folder_ + ": has " + std::to_string(rows_) + " rows, too few");
    }
    std::vector<double> values;
    values.reserve(static_cast<size_t>(count) * elements_);
    for (int64_t row = first; row < first + count; ++row) {
      Load(row / chunk_rows_);
      const size_t begin = static_cast<size_t>(row % chunk_rows_) * elements_;
      for (size_t i = begin; i < begin + elements_; ++i) {
        values.push_back(Value(chunk_.data() + i * Size()));
      }
    }
    return values;
  }

 private:
  size_t Size() const {
    static const std::map<std::string, size_t> kSizes = {
        {"<f4", 4}, {"<f8", 8}, {"|u1", 1}, {"|b1", 1}, {"|i1", 1},
        {"<i2", 2}, {"<u2", 2}, {"<i4", 4}, {"<u4", 4}, {"<i8", 8}};
    const auto found = kSizes.find(dtype_);
    return found == kSizes.end() ? 0 : found->second;
  }
  uint64_t ChunkBytes() const { return static_cast<uint64_t>(chunk_rows_) * elements_ * Size(); }

  template <class T>
  static double As(const uint8_t* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return static_cast<double>(value);
  }
  double Value(const uint8_t* bytes) const {
    if (dtype_ == "<f4") return As<float>(bytes);
    if (dtype_ == "<f8") return As<double>(bytes);
    if (dtype_ == "<i8") return As<int64_t>(bytes);
    if (dtype_ == "<i4") return As<int32_t>(bytes);
    if (dtype_ == "<u4") return As<uint32_t>(bytes);
    if (dtype_ == "<i2") return As<int16_t>(bytes);
    if (dtype_ == "<u2") return As<uint16_t>(bytes);
    return dtype_ == "|i1" ? As<int8_t>(bytes) : As<uint8_t>(bytes);
  }

  // Makes `chunk` the one in memory.
  void Load(int64_t chunk) {
    if (chunk == loaded_) return;
    std::string path = folder_ + "/" + std::to_string(chunk);
    for (size_t axis = 0; axis < shape_.size(); ++axis) path += ".0";
    loaded_ = -1;
    // zarr would take it for a chunk of fill values, which a lost file is not
    if (!fs::exists(path)) {
      throw BadInput(path + ": is missing; copy the array again, or write it with zarr's " +
                     "write_empty_chunks=True where it holds fill values alone");
    }
    chunk_ = Decoded(ReadFile(path, kLargestFile), path);
    loaded_ = chunk;
  }

  std::vector<uint8_t> Decoded(const std::vector<uint8_t>& bytes, const std::string& path) const {
    const size_t size = ChunkBytes();
    if (compressor_.empty() && bytes.size() != size) {
      throw BadInput(path + ": has " + std::to_string(bytes.size()) + " bytes, a chunk of " +
                     folder_ + "/.zarray has " + std::to_string(size) + "; copy the array again");
    }
    if (compressor_ != "blosc") {
      const parquet::Codec codec = compressor_.empty()     ? parquet::Codec::kNone
                                   : compressor_ == "zstd" ? parquet::Codec::kZstd
                                                           : parquet::Codec::kGzip;
      return parquet::Decompress(codec, bytes, size, path);
    }
    size_t claimed = 0;
    std::vector<uint8_t> out(size);
    if (blosc_cbuffer_validate(bytes.data(), bytes.size(), &claimed) != 0 || claimed != size ||
        blosc_decompress_ctx(bytes.data(), out.data(), size, 1) != static_cast<int>(size)) {
      throw BadInput(path + ": is damaged, or not of the array's size; copy the array again");
    }
    return out;
  }

  std::string folder_, dtype_, compressor_;
  int64_t rows_ = 0, chunk_rows_ = 1;
  std::vector<int64_t> shape_;
  uint64_t elements_ = 1;
  int64_t loaded_ = -1;
  std::vector<uint8_t> chunk_;
};

class ZarrSource : public ArraySource {
 public:
  explicit ZarrSource(const std::string& folder) : folder_(folder) {
    ZarrArray ends(folder + "/meta/episode_ends");
    int64_t before = 0;
    for (const double end : ends.Read(0, ends.rows())) {
      ends_.push_back(static_cast<int64_t>(end));
      if (ends_.back() <= before) {
        throw BadInput(folder + "/meta/episode_ends: episode " + std::to_string(ends_.size() - 1) +
                       " has no frames; copy the array again");
      }
      before = ends_.back();
    }
    std::vector<std::string> names;
    std::error_code error;
    const fs::directory_iterator data(folder + "/data", error);
    if (error) throw BadInput(folder + "/data: " + error.message() + "; copy the data set again");
    for (const auto& entry : data) {
      if (!entry.is_directory()) continue;
      if (!fs::exists(entry.path() / ".zarray")) {
        throw BadInput(entry.path().string() + "/.zarray: is missing; copy the array again, or " +
                       "remove its folder");
      }
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const auto added = open_.try_emplace(name, folder + "/data/" + name).first;
      if (added->second.rows() != before) {
        throw BadInput(folder + "/data/" + name + ": has " + std::to_string(added->second.rows()) +
                       " rows, meta/episode_ends ends at " + std::to_string(before) +
                       "; copy both again");
      }
      arrays_.push_back({name, added->second.shape(), added->second.Dtype()});
    }
  }

  const char* layout() const override { return "zarr"; }
  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  int64_t episodes() const override { return static_cast<int64_t>(ends_.size()); }
  int64_t Length(int64_t episode) override {
    return ends_.at(static_cast<size_t>(episode)) - Start(episode);
  }
  std::vector<double> Read(int64_t episode, const SourceArray& array, int64_t first,
                           int64_t count) override {
    return open_.at(array.name).Read(Start(episode) + first, count);
  }
  std::vector<std::string> DefaultState() const override {
    return open_.contains("state") ? std::vector<std::string>{"state"} : std::vector<std::string>{};
  }

 private:
  int64_t Start(int64_t episode) const {
    return episode == 0 ? 0 : ends_.at(static_cast<size_t>(episode - 1));
  }

  std::string folder_;
  std::vector<int64_t> ends_;
  std::vector<SourceArray> arrays_;
  std::map<std::string, ZarrArray> open_;
};

}  // namespace

std::unique_ptr<ArraySource> OpenZarr(const std::string& folder) {
  return std::make_unique<ZarrSource>(folder);
}

}  // namespace mjp::datasets

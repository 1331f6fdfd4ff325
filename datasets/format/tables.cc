#include "datasets/format/tables.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "datasets/parquet/reader.h"
#include "datasets/parquet/writer.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;
using parquet::Field;
using parquet::LeafValues;
using parquet::Type;

constexpr const char* kOwnChunk = "meta/episodes/chunk_index";
constexpr const char* kOwnFile = "meta/episodes/file_index";

// Columns of one file of a table. Errors name file and column.
class TableReader {
 public:
  explicit TableReader(const std::string& path) : reader_(path) {}

  bool Has(const std::string& column) const { return reader_.Find(column) != nullptr; }
  size_t rows() const { return static_cast<size_t>(reader_.metadata().rows); }
  const parquet::Metadata& metadata() const { return reader_.metadata(); }

  parquet::Column Column(const std::string& name) const {
    const parquet::Leaf* leaf = reader_.Find(name);
    if (leaf == nullptr) throw BadInput(reader_.name() + ": has no column \"" + name + "\"");
    return reader_.ReadAll(*leaf);
  }
  // Texts, or lists of them.
  parquet::Column Texts(const std::string& name) const {
    parquet::Column column = Column(name);
    if (column.values.texts.size() != column.offsets.back()) {
      throw BadInput(reader_.name() + ": column \"" + name + "\" has not texts");
    }
    return column;
  }
  std::vector<int64_t> Ints(const std::string& name) const {
    return PerRow(Column(name).values.ints, name);
  }
  std::vector<double> Numbers(const std::string& name) const {
    return PerRow(Column(name).values.numbers, name);
  }
  // Lists of `size` numbers per row, one after the other.
  std::vector<double> Lists(const std::string& name, size_t size) const {
    const parquet::Column column = Column(name);
    std::vector<double> numbers = column.values.numbers;
    if (numbers.empty()) numbers.assign(column.values.ints.begin(), column.values.ints.end());
    if (numbers.size() != column.offsets.back()) {
      throw BadInput(reader_.name() + ": column \"" + name + "\" has not numbers");
    }
    for (size_t row = 0; row < rows(); ++row) {
      if (column.offsets[row + 1] - column.offsets[row] != size) {
        throw BadInput(reader_.name() + ": column \"" + name + "\": row " + std::to_string(row) +
                       " has not the " + std::to_string(size) + " numbers of the feature");
      }
    }
    return numbers;
  }

 private:
  template <class T>
  std::vector<T> PerRow(std::vector<T> values, const std::string& name) const {
    if (values.size() != rows()) {
      throw BadInput(reader_.name() + ": column \"" + name + "\" has not a number in each row");
    }
    return values;
  }

  parquet::Reader reader_;
};

void ReadVideos(const TableReader& table, const Feature& feature, std::span<Episode> episodes) {
  const std::string prefix = "videos/" + feature.name + "/";
  const auto chunk = table.Ints(prefix + "chunk_index"), file = table.Ints(prefix + "file_index");
  const auto from = table.Numbers(prefix + "from_timestamp");
  const auto to = table.Numbers(prefix + "to_timestamp");
  for (size_t i = 0; i < episodes.size(); ++i) {
    episodes[i].videos[feature.name] = {{chunk[i], file[i]}, from[i], to[i]};
  }
}

void ReadEpisodeStatistics(const TableReader& table, const Feature& feature,
                           std::span<Episode> episodes) {
  const std::string prefix = "stats/" + feature.name + "/";
  if (!table.Has(prefix + "mean")) return;
  const auto size = static_cast<size_t>(StatisticsSize(feature));
  for (size_t i = 0; i < kStatistics.size(); ++i) {
    const std::string name = prefix + kStatistics[i];
    if (i >= 4 && !table.Has(name)) continue;
    const std::vector<double> values = table.Lists(name, size);
    for (size_t row = 0; row < episodes.size(); ++row) {
      const auto begin = values.begin() + static_cast<ptrdiff_t>(row * size);
      episodes[row].statistics[feature.name].Rows()[i]->assign(
          begin, begin + static_cast<ptrdiff_t>(size));
    }
  }
  const std::vector<double> counts = table.Lists(prefix + "count", 1);
  for (size_t row = 0; row < episodes.size(); ++row) {
    episodes[row].statistics[feature.name].count =
        static_cast<int64_t>(std::clamp(counts[row], 0.0, 1e15));
  }
}

void ReadFile(const std::string& path, const Info& info, std::vector<Episode>& all) {
  const TableReader table(path);
  const auto index = table.Ints("episode_index"), length = table.Ints("length");
  const auto from = table.Ints("dataset_from_index"), to = table.Ints("dataset_to_index");
  const auto chunk = table.Ints("data/chunk_index"), file = table.Ints("data/file_index");
  const parquet::Column tasks = table.Texts("tasks");
  const size_t first = all.size();
  for (size_t i = 0; i < table.rows(); ++i) {
    Episode episode{.index = index[i],
                    .length = length[i],
                    .from = from[i],
                    .to = to[i],
                    .data = {chunk[i], file[i]},
                    .tasks = {},
                    .videos = {},
                    .statistics = {},
                    .table = path};
    const int64_t start = all.empty() ? 0 : all.back().to;
    if (episode.index != static_cast<int64_t>(all.size()) || episode.from != start ||
        episode.length < 1 || episode.length > (int64_t{1} << 40) ||
        episode.to != start + episode.length) {
      throw BadInput(path + ": row " + std::to_string(i) + ": episode " +
                     std::to_string(episode.index) + " with frames " +
                     std::to_string(episode.from) + " ... " + std::to_string(episode.to) +
                     " does not follow the one before, which ends at " + std::to_string(start));
    }
    for (uint64_t task = tasks.offsets[i]; task < tasks.offsets[i + 1]; ++task) {
      episode.tasks.emplace_back(tasks.values.texts[task]);
    }
    all.push_back(std::move(episode));
  }
  const std::span<Episode> added(all.begin() + static_cast<ptrdiff_t>(first), all.end());
  for (const Feature& feature : info.features) {
    if (feature.kind == Kind::kVideo) ReadVideos(table, feature, added);
    ReadEpisodeStatistics(table, feature, added);
  }
}

// A table's columns while they are put together.
struct Table {
  std::vector<Field> fields;
  std::vector<LeafValues> leaves;

  LeafValues& Add(Field field) {
    fields.push_back(std::move(field));
    return leaves.emplace_back();
  }
  void AddInts(const std::string& name, const std::vector<Episode>& episodes, auto value) {
    LeafValues& leaf = Add({.name = name});
    for (const Episode& episode : episodes) leaf.values.ints.push_back(value(episode));
  }
  void AddTexts(const std::vector<Episode>& episodes) {
    LeafValues& leaf = Add({.name = "tasks", .type = Type::kBytes, .text = true, .lists = 1});
    leaf.offsets = {0};
    for (const Episode& episode : episodes) {
      leaf.values.texts.insert(leaf.values.texts.end(), episode.tasks.begin(), episode.tasks.end());
      leaf.offsets.push_back(leaf.values.texts.size());
    }
  }
  void AddVideos(const std::vector<Episode>& episodes, const std::string& feature) {
    const std::string prefix = "videos/" + feature + "/";
    const auto part = [&](const Episode& e) -> const VideoPart& { return e.videos.at(feature); };
    AddInts(prefix + "chunk_index", episodes, [&](const Episode& e) { return part(e).file.chunk; });
    AddInts(prefix + "file_index", episodes, [&](const Episode& e) { return part(e).file.file; });
    for (const bool end : {false, true}) {
      LeafValues& leaf =
          Add({.name = prefix + (end ? "to_timestamp" : "from_timestamp"), .type = Type::kDouble});
      for (const Episode& episode : episodes) {
        leaf.values.numbers.push_back(end ? part(episode).to : part(episode).from);
      }
    }
  }
  void AddStatistics(const std::vector<Episode>& episodes, const Feature& feature) {
    const std::string prefix = "stats/" + feature.name + "/";
    for (size_t i = 0; i < kStatistics.size(); ++i) {
      LeafValues& leaf = Add({.name = prefix + kStatistics[i],
                              .type = Type::kDouble,
                              .lists = feature.IsPicture() ? 3 : 1});
      leaf.offsets = {0};
      if (feature.IsPicture()) leaf.inner = {1, 1};
      for (const Episode& episode : episodes) {
        const std::vector<double>& row = *episode.statistics.at(feature.name).Rows()[i];
        leaf.values.numbers.insert(leaf.values.numbers.end(), row.begin(), row.end());
        leaf.offsets.push_back(leaf.values.numbers.size());
      }
    }
    LeafValues& count = Add({.name = prefix + "count", .type = Type::kInt64, .lists = 1});
    count.offsets = {0};
    for (const Episode& episode : episodes) {
      count.values.ints.push_back(episode.statistics.at(feature.name).count);
      count.offsets.push_back(count.values.ints.size());
    }
  }

  std::vector<uint8_t> File(size_t rows, std::map<std::string, std::string> key_values) const {
    parquet::Writer writer(fields, std::move(key_values));
    std::vector<uint8_t> bytes = parquet::Writer::Begin();
    for (const auto& part :
         {writer.AddRowGroup(static_cast<int64_t>(rows), leaves), writer.Footer()}) {
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
  }
};

Json PandasColumn(const char* name, const char* pandas_type, const char* numpy_type) {
  return {{"name", name},
          {"field_name", name},
          {"pandas_type", pandas_type},
          {"numpy_type", numpy_type},
          {"metadata", nullptr}};
}

}  // namespace

std::vector<Episode> ReadEpisodes(const std::string& folder, const Info& info) {
  std::vector<std::string> files;
  std::error_code none;
  for (const auto& chunk : fs::directory_iterator(folder + "/meta/episodes", none)) {
    for (const auto& file : fs::directory_iterator(chunk.path(), none)) {
      if (file.path().extension() == ".parquet") files.push_back(file.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<Episode> episodes;
  for (const std::string& file : files) ReadFile(file, info, episodes);
  return episodes;
}

std::string EpisodesPath(FileIndex place) {
  return ExpandPath("meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
                    {.video_key = "", .chunk = place.chunk, .file = place.file}, "");
}

std::vector<uint8_t> EpisodesFile(const std::vector<Episode>& episodes, const Info& info,
                                  FileIndex place) {
  Table table;
  table.AddInts("episode_index", episodes, [](const Episode& e) { return e.index; });
  table.AddTexts(episodes);
  table.AddInts("length", episodes, [](const Episode& e) { return e.length; });
  table.AddInts("data/chunk_index", episodes, [](const Episode& e) { return e.data.chunk; });
  table.AddInts("data/file_index", episodes, [](const Episode& e) { return e.data.file; });
  table.AddInts("dataset_from_index", episodes, [](const Episode& e) { return e.from; });
  table.AddInts("dataset_to_index", episodes, [](const Episode& e) { return e.to; });
  for (const Feature& feature : info.features) {
    if (feature.kind == Kind::kVideo) table.AddVideos(episodes, feature.name);
  }
  for (const Feature& feature : info.features) {
    if (feature.kind != Kind::kText) table.AddStatistics(episodes, feature);
  }
  table.AddInts(kOwnChunk, episodes, [&](const Episode&) { return place.chunk; });
  table.AddInts(kOwnFile, episodes, [&](const Episode&) { return place.file; });
  return table.File(episodes.size(), {});
}

Tasks ReadTasks(const std::string& folder) {
  const std::string path = folder + "/meta/tasks.parquet";
  const TableReader table(path);
  // pandas' name for an index that has none
  const bool unnamed = !table.Has("task") && table.Has("__index_level_0__");
  const parquet::Column texts = table.Texts(unnamed ? "__index_level_0__" : "task");
  const std::vector<int64_t> indices = table.Ints("task_index");
  Tasks tasks;
  for (size_t row = 0; row < indices.size(); ++row) {
    if (indices[row] != static_cast<int64_t>(row) || texts.values.texts.size() != indices.size()) {
      throw BadInput(path + ": row " + std::to_string(row) + " has not the task_index " +
                     std::to_string(row));
    }
    tasks.texts.emplace_back(texts.values.texts[row]);
  }
  const auto entry = table.metadata().key_values.find("pandas");
  if (entry == table.metadata().key_values.end()) return tasks;
  const Json pandas = ParseJson(entry->second, path + ": entry \"pandas\"");
  const auto index = pandas.find("index_columns");
  tasks.found_by_lerobot = index != pandas.end() && index->is_array() && index->size() == 1 &&
                           (*index)[0] == (unnamed ? "__index_level_0__" : "task");
  return tasks;
}

std::vector<uint8_t> TasksFile(const std::vector<std::string>& texts) {
  Table table;
  LeafValues& indices = table.Add({.name = "task_index"});
  for (size_t i = 0; i < texts.size(); ++i) indices.values.ints.push_back(static_cast<int64_t>(i));
  LeafValues& names = table.Add({.name = "task", .type = Type::kBytes, .text = true});
  names.values.texts.assign(texts.begin(), texts.end());
  const Json columns = Json::array(
      {PandasColumn("task_index", "int64", "int64"), PandasColumn("task", "unicode", "object")});
  const Json pandas = {{"index_columns", Json::array({"task"})},
                       {"column_indexes", Json::array()},
                       {"columns", columns}};
  return table.File(texts.size(), {{"pandas", pandas.dump()}});
}

}  // namespace mjp::datasets

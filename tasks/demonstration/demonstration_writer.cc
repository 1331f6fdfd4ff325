#include "tasks/demonstration/demonstration_writer.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "datasets/dataset.h"
#include "tasks/task_code.h"

namespace mjp::app {
namespace {

// What a recording remembers of how it was begun: meta/recording.json.
Json BeginningOf(const RecordOptions& options, const TaskFile& file) {
  Json conditions = {{"task", file.name()},
                     {"model", file.hash()},
                     {"by", options.by},
                     {"seed", options.seed},
                     {"keep", options.keep_all ? "all" : "success"},
                     {"max_steps", options.steps}};
  for (const auto& [name, value] : options.settings) conditions[name] = value;
  return conditions;
}

std::string ValueOf(const Json& conditions, const std::string& key) {
  return conditions.contains(key) ? conditions[key].dump() : "none";
}

std::string ConditionsPath(const std::string& folder) { return folder + "/meta/recording.json"; }

// Throws Error where `dataset` has episodes and was begun otherwise; touches nothing.
void CheckBeginning(const Json& now, datasets::Dataset& dataset) {
  const std::string& folder = dataset.folder();
  if (dataset.episodes().empty() && datasets::SpooledEpisodes(folder).empty()) return;
  const std::string path = ConditionsPath(folder);
  if (!std::filesystem::exists(path)) {
    throw BadInput(folder +
                   ": is a data set that was not begun by mjpolicy record; give another --out");
  }
  const Json before = ReadJson(path);
  Json all = now;
  all.update(before);
  for (const auto& [key, value] : all.items()) {
    if (ValueOf(before, key) == ValueOf(now, key)) continue;
    throw BadInput(folder + ": was recorded with " + key + " " + ValueOf(before, key) +
                   ", now it is " + ValueOf(now, key) + "; go on with that, or give another --out");
  }
}

// The seed of the data set's last episode.
std::optional<uint32_t> LastSeed(const std::string& folder) {
  datasets::Dataset dataset(folder);
  if (dataset.episodes().empty()) return {};
  const size_t last = dataset.episodes().size() - 1;
  const auto column = dataset.Read(last, *dataset.info().Find("seed"), 0, 1);
  return static_cast<uint32_t>(column.values.ints.at(0));
}

}  // namespace

DemonstrationWriter::DemonstrationWriter(const RecordOptions& options,
                                         std::shared_ptr<const TaskFile> file)
    : file_(std::move(file)),
      frames_(*file_, options.pictures),
      writer_(
          options.out, InfoOf(*file_, options.pictures),
          [&](datasets::Dataset& begun) { CheckBeginning(BeginningOf(options, *file_), begun); }),
      replay_(file_, MakeTaskCode(*file_)) {
  writer_.Finish();  // what a killed recorder left
  if (writer_.saved() == 0) {
    WriteFileAtomically(ConditionsPath(options.out), BeginningOf(options, *file_).dump(2) + "\n");
  }
  const std::optional<uint32_t> last = LastSeed(options.out);
  next_seed_ = last ? *last + uint64_t{1} : options.seed;
}

void DemonstrationWriter::Save(const Demonstration& shown) {
  try {
    Replay(replay_, shown, [&](int step) { writer_.AddFrame(frames_.Make(replay_, shown, step)); });
  } catch (...) {
    writer_.DropEpisode();
    throw;
  }
  writer_.EndEpisode();
}

}  // namespace mjp::app

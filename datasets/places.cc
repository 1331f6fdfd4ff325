#include "datasets/places.h"

#include <cmath>

#include "base/error.h"

namespace mjp::datasets {
namespace {

double NumberAt(const parquet::Values& values, size_t at) {
  return values.numbers.empty() ? static_cast<double>(values.ints.at(at)) : values.numbers.at(at);
}

}  // namespace

std::string WrongPlace(const Info& info, const Episode& episode, const std::string& name,
                       const parquet::Values& values) {
  for (int64_t frame = 0; frame < episode.length; ++frame) {
    const double value = NumberAt(values, static_cast<size_t>(frame));
    const std::string text = "frame " + std::to_string(frame) + ": " + name + " is ";
    if (name == "timestamp") {
      const double wanted = static_cast<double>(frame) / info.fps;
      // a time in single precision is off by half a unit of its last place
      const double tolerance = kTimeTolerance + wanted * 1.2e-7;
      if (std::abs(value - wanted) <= tolerance) continue;
      return text + std::to_string(value) + ", not " + std::to_string(wanted) + " s";
    }
    const int64_t wanted = name == "frame_index"     ? frame
                           : name == "episode_index" ? episode.index
                                                     : episode.from + frame;
    if (value == static_cast<double>(wanted)) continue;
    return text + std::to_string(std::llround(value)) + ", not " + std::to_string(wanted);
  }
  return "";
}

void CheckPlaces(Dataset& dataset, size_t episode) {
  const Episode& of = dataset.episodes().at(episode);
  for (const char* name : kPlaces) {
    const parquet::Column column = dataset.Read(episode, *dataset.info().Find(name));
    const std::string wrong = WrongPlace(dataset.info(), of, name, column.values);
    if (wrong.empty()) continue;
    throw BadInput(dataset.DataPath(of) + ": episode " + std::to_string(episode) + ": " + wrong +
                   "; `mjpolicy dataset` lists what is wrong");
  }
}

}  // namespace mjp::datasets

#ifndef DATASETS_PLACES_H_
#define DATASETS_PLACES_H_

#include <string>

#include "datasets/dataset.h"

namespace mjp::datasets {

// The columns that say where a frame is.
inline constexpr const char* kPlaces[] = {"timestamp", "frame_index", "episode_index", "index"};

// What is wrong with one of them in an episode: "frame 2: timestamp is 0.204000, not 0.200000 s",
// of the first frame; "" where nothing is. `values` are those of the column `name`.
std::string WrongPlace(const Info& info, const Episode& episode, const std::string& name,
                       const parquet::Values& values);

// Throws Error where a frame of an episode is not at its place, so that its rows are others', out
// of order or of another rate than info.json says.
void CheckPlaces(Dataset& dataset, size_t episode);

}  // namespace mjp::datasets

#endif  // DATASETS_PLACES_H_

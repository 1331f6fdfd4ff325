#ifndef TESTS_DATASETS_RECORDED_SET_H_
#define TESTS_DATASETS_RECORDED_SET_H_

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "datasets/check.h"
#include "datasets/dataset.h"
#include "datasets/recording/writer.h"

// A small data set whose values follow from episode and frame.

namespace mjp_test {

inline mjp::datasets::Info RecordedInfo(const std::string& pictures) {
  using mjp::datasets::MakeFeature;
  mjp::datasets::Info info;
  info.fps = 10;
  info.robot_type = "test";
  info.features = {MakeFeature("observation.state", "float32", {2}, {"x", "y"}),
                   MakeFeature("action", "float64", {3}),
                   MakeFeature("next.done", "bool", {1}),
                   MakeFeature("next.reward", "float32", {1}),
                   MakeFeature("grid", "int64", {2, 2}),
                   MakeFeature("note", "string", {1}),
                   MakeFeature("observation.images.top", pictures, {64, 96, 3},
                               {"height", "width", "channels"})};
  return info;
}

inline int64_t RecordedLength(int64_t episode) { return 4 + episode % 3; }

inline mjp::datasets::Frame RecordedFrame(int64_t episode, int64_t frame) {
  const auto at = static_cast<double>(episode * 100 + frame);
  mjp::datasets::Frame result;
  result.task = episode % 2 == 0 ? "push the T" : "reach";
  result.numbers["observation.state"] = {std::sin(at), 0.1 * at};
  result.numbers["action"] = {at / 3, -at, 1e-9 * at};
  result.numbers["next.done"] = {frame + 1 == RecordedLength(episode) ? 1.0 : 0.0};
  result.numbers["next.reward"] = {at};
  result.numbers["grid"] = {at, at + 1, at + 2, -at};
  result.texts["note"] = "note " + std::to_string(frame);
  mjp::datasets::Picture& picture = result.pictures["observation.images.top"];
  picture.height = 64;
  picture.width = 96;
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 96; ++x) {
      const auto shade = static_cast<int>(100 + 60 * std::sin((x + y + 3 * at) / 15));
      for (const int value : {shade, 2 * y, 255 - 2 * x}) {
        picture.rgb.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return result;
}

inline void RecordEpisode(mjp::datasets::DatasetWriter& writer, int64_t episode) {
  for (int64_t frame = 0; frame < RecordedLength(episode); ++frame) {
    writer.AddFrame(RecordedFrame(episode, frame));
  }
  writer.EndEpisode();
}

// Expects that the data set has `episodes` episodes, all as they were recorded.
inline void ExpectRecorded(const std::string& folder, int64_t episodes) {
  mjp::datasets::Dataset dataset(folder);
  ASSERT_EQ(dataset.info().episodes, episodes);
  for (const std::string& problem : Check(dataset, {}).problems) ADD_FAILURE() << problem;
  for (int64_t episode = 0; episode < episodes; ++episode) {
    const auto at = static_cast<size_t>(episode);
    ASSERT_EQ(dataset.episodes()[at].length, RecordedLength(episode));
    for (const mjp::datasets::Feature& feature : dataset.info().features) {
      if (feature.kind == mjp::datasets::Kind::kVideo ||
          mjp::datasets::IsDefaultFeature(feature.name)) {
        continue;
      }
      const mjp::parquet::Column column = dataset.Read(at, feature);
      for (int64_t frame = 0; frame < RecordedLength(episode); ++frame) {
        const mjp::datasets::Frame want = RecordedFrame(episode, frame);
        const auto row = static_cast<size_t>(frame);
        if (feature.kind == mjp::datasets::Kind::kImage) {
          EXPECT_EQ(dataset.ReadPicture(at, feature, frame).rgb,
                    want.pictures.at(feature.name).rgb);
        } else if (feature.kind == mjp::datasets::Kind::kText) {
          EXPECT_EQ(column.values.texts[row], want.texts.at(feature.name));
        } else {
          for (size_t i = 0; i < want.numbers.at(feature.name).size(); ++i) {
            const size_t value = column.offsets[row] + i;
            const double have = column.values.numbers.empty()
                                    ? static_cast<double>(column.values.ints.at(value))
                                    : column.values.numbers.at(value);
            const double wanted = want.numbers.at(feature.name)[i];
            const bool single = feature.kind == mjp::datasets::Kind::kFloat;
            EXPECT_EQ(have, single ? static_cast<double>(static_cast<float>(wanted)) : wanted);
          }
        }
      }
    }
  }
}

}  // namespace mjp_test

#endif  // TESTS_DATASETS_RECORDED_SET_H_

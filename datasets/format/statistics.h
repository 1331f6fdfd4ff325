#ifndef DATASETS_FORMAT_STATISTICS_H_
#define DATASETS_FORMAT_STATISTICS_H_

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "datasets/format/info.h"
#include "datasets/pictures/picture.h"

// What LeRobot stores of each feature, and how it computes it: lerobot 0.6.1,
// datasets/compute_stats.py. Here all sums are doubles.

namespace mjp::datasets {

inline constexpr std::array<double, 5> kQuantiles = {0.01, 0.10, 0.50, 0.90, 0.99};
// Names of the statistics but for count, in the order of FeatureStatistics::Rows.
inline constexpr std::array<const char*, 9> kStatistics = {"min", "max", "mean", "std", "q01",
                                                           "q10", "q50", "q90",  "q99"};

// Of one feature: a value per element of its shape, of a picture per channel, in 0 ... 1.
struct FeatureStatistics {
  std::vector<double> min, max, mean, std;
  std::array<std::vector<double>, 5> quantiles;
  int64_t count = 0;  // frames; of a picture those that were sampled

  // The values of each of kStatistics; null where a file has none.
  std::array<const std::vector<double>*, 9> Rows() const;
  std::array<std::vector<double>*, 9> Rows();
};
using Statistics = std::map<std::string, FeatureStatistics>;

// Of an episode's `values`, (frames, elements). Quantiles are those of a histogram of 5000 bins.
FeatureStatistics Summarise(std::span<const double> values, int64_t elements);

// Which frames of an episode of `frames` LeRobot takes for a picture's statistics.
std::vector<int64_t> SampledFrames(int64_t frames);

// Statistics of pictures, added one by one: every n-th row and column of large ones.
class PictureStatistics {
 public:
  void Add(const Picture& picture);
  FeatureStatistics Result() const;

 private:
  int64_t pictures_ = 0;
  std::array<std::array<uint64_t, 256>, 3> counts_{};  // (channel, value)
};

// Adds an episode's statistics to those of others, as LeRobot joins them: extremes, exact mean and
// variance, quantiles weighted by count.
void Combine(FeatureStatistics& total, const FeatureStatistics& episode);

// meta/stats.json. `features` say which are pictures, whose values have the shape (3, 1, 1).
std::string StatisticsText(const Statistics& statistics, const std::vector<Feature>& features);
// Reads it. Throws Error naming file, feature and statistic for what has not the feature's shape.
Statistics ReadStatistics(const std::string& path, const std::vector<Feature>& features);

// Values that a feature's statistics have: its elements, of a picture its channels.
int64_t StatisticsSize(const Feature& feature);

}  // namespace mjp::datasets

#endif  // DATASETS_FORMAT_STATISTICS_H_

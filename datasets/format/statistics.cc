#include "datasets/format/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace mjp::datasets {
namespace {

constexpr int kBins = 5000;
constexpr double kMostFrames = 1e12;
constexpr double kPadding = 1e-10;  // of the histogram's range

// Where a histogram's cumulated counts reach `target`, linear within the bin.
template <class Counts>
double Quantile(const Counts& counts, double target, double low, double width) {
  double before = 0;
  for (size_t bin = 0; bin < counts.size(); ++bin) {
    const auto count = static_cast<double>(counts[bin]);
    if (before + count >= target) {
      const double left = low + static_cast<double>(bin) * width;
      return bin == 0 || count == 0 ? left : left + (target - before) / count * width;
    }
    before += count;
  }
  return low + static_cast<double>(counts.size()) * width;
}

// Statistics of one element, whose values are `stride` apart.
void SummariseElement(std::span<const double> values, int64_t stride, int64_t element,
                      FeatureStatistics& out) {
  const auto at = [&](int64_t frame) {
    return values[static_cast<size_t>(frame * stride + element)];
  };
  double low = at(0), high = at(0), sum = 0;
  for (int64_t i = 0; i < out.count; ++i) {
    low = std::min(low, at(i));
    high = std::max(high, at(i));
    sum += at(i);
  }
  const double mean = sum / static_cast<double>(out.count);
  double squares = 0;
  for (int64_t i = 0; i < out.count; ++i) squares += (at(i) - mean) * (at(i) - mean);
  out.min.push_back(low);
  out.max.push_back(high);
  out.mean.push_back(mean);
  out.std.push_back(std::sqrt(squares / static_cast<double>(out.count)));
  if (out.count < 2) {
    for (auto& quantile : out.quantiles) quantile.push_back(mean);
    return;
  }
  const double start = low - kPadding, width = (high + kPadding - start) / kBins;
  std::vector<int64_t> counts(kBins);
  for (int64_t i = 0; i < out.count; ++i) {
    const double bin = width > 0 ? std::floor((at(i) - start) / width) : 0;
    ++counts[static_cast<size_t>(std::clamp(bin, 0.0, kBins - 1.0))];
  }
  for (size_t q = 0; q < kQuantiles.size(); ++q) {
    out.quantiles[q].push_back(
        Quantile(counts, kQuantiles[q] * static_cast<double>(out.count), start, width));
  }
}

Json Shaped(const std::vector<double>& values, bool picture) {
  Json json = Json::array();
  for (const double value : values) {
    if (picture) {
      json.push_back(Json::array({Json::array({value})}));
    } else {
      json.push_back(value);
    }
  }
  return json;
}

// All numbers within nested lists.
void Flatten(const Json& json, std::vector<double>& out, bool& numbers) {
  if (json.is_array()) {
    for (const Json& element : json) Flatten(element, out, numbers);
  } else {
    numbers = numbers && (json.is_number() || json.is_boolean());
    out.push_back(!numbers ? 0 : json.is_boolean() ? json.get<bool>() : json.get<double>());
  }
}

}  // namespace

std::array<const std::vector<double>*, 9> FeatureStatistics::Rows() const {
  return {&min,          &max,          &mean,         &std,         &quantiles[0],
          &quantiles[1], &quantiles[2], &quantiles[3], &quantiles[4]};
}

std::array<std::vector<double>*, 9> FeatureStatistics::Rows() {
  return {&min,          &max,          &mean,         &std,         &quantiles[0],
          &quantiles[1], &quantiles[2], &quantiles[3], &quantiles[4]};
}

FeatureStatistics Summarise(std::span<const double> values, int64_t elements) {
  FeatureStatistics out;
  out.count = static_cast<int64_t>(values.size()) / elements;
  for (int64_t element = 0; element < elements; ++element) {
    SummariseElement(values, elements, element, out);
  }
  return out;
}

std::vector<int64_t> SampledFrames(int64_t frames) {
  const auto root = static_cast<int64_t>(std::pow(static_cast<double>(frames), 0.75));
  const int64_t samples = std::max(std::min<int64_t>(100, frames), std::min<int64_t>(root, 10000));
  std::vector<int64_t> sampled;
  for (int64_t i = 0; i < samples; ++i) {
    const double step =
        samples > 1 ? static_cast<double>(frames - 1) / static_cast<double>(samples - 1) : 0;
    // to even where in the middle, as NumPy rounds
    sampled.push_back(static_cast<int64_t>(std::nearbyint(static_cast<double>(i) * step)));
  }
  return sampled;
}

void PictureStatistics::Add(const Picture& picture) {
  constexpr int kLarge = 300, kTarget = 150;
  const int longer = std::max(picture.width, picture.height);
  const int step = longer < kLarge ? 1 : longer / kTarget;
  for (int y = 0; y < picture.height; y += step) {
    for (int x = 0; x < picture.width; x += step) {
      const uint8_t* pixel =
          picture.rgb.data() +
          (static_cast<size_t>(y) * static_cast<size_t>(picture.width) + static_cast<size_t>(x)) *
              3;
      for (size_t channel = 0; channel < 3; ++channel) ++counts_[channel][pixel[channel]];
    }
  }
  ++pictures_;
}

FeatureStatistics PictureStatistics::Result() const {
  FeatureStatistics out;
  out.count = pictures_;
  for (const auto& counts : counts_) {
    double total = 0, sum = 0, squares = 0;
    int low = 255, high = 0;
    for (int value = 0; value < 256; ++value) {
      const auto count = static_cast<double>(counts[static_cast<size_t>(value)]);
      if (count == 0) continue;
      low = std::min(low, value);
      high = std::max(high, value);
      total += count;
      sum += count * value;
      squares += count * value * value;
    }
    const double mean = sum / total;
    out.min.push_back(low / 255.0);
    out.max.push_back(high / 255.0);
    out.mean.push_back(mean / 255);
    out.std.push_back(std::sqrt(std::max(0.0, squares / total - mean * mean)) / 255);
    const double start = low - kPadding, width = (high + kPadding - start) / kBins;
    std::vector<uint64_t> bins(kBins);
    for (int value = low; value <= high; ++value) {
      const double bin = std::floor((value - start) / width);
      bins[static_cast<size_t>(std::clamp(bin, 0.0, kBins - 1.0))] +=
          counts[static_cast<size_t>(value)];
    }
    for (size_t q = 0; q < kQuantiles.size(); ++q) {
      out.quantiles[q].push_back(Quantile(bins, kQuantiles[q] * total, start, width) / 255);
    }
  }
  return out;
}

void Combine(FeatureStatistics& total, const FeatureStatistics& episode) {
  if (total.count == 0) {
    total = episode;
    return;
  }
  const auto old_count = static_cast<double>(total.count);
  const auto new_count = static_cast<double>(episode.count);
  const double count = old_count + new_count;
  for (size_t i = 0; i < total.mean.size(); ++i) {
    total.min[i] = std::min(total.min[i], episode.min[i]);
    total.max[i] = std::max(total.max[i], episode.max[i]);
    const double mean = (total.mean[i] * old_count + episode.mean[i] * new_count) / count;
    const double left = total.mean[i] - mean, right = episode.mean[i] - mean;
    total.std[i] = std::sqrt(((total.std[i] * total.std[i] + left * left) * old_count +
                              (episode.std[i] * episode.std[i] + right * right) * new_count) /
                             count);
    total.mean[i] = mean;
  }
  for (size_t q = 0; q < kQuantiles.size(); ++q) {
    std::vector<double>& quantile = total.quantiles[q];
    if (episode.quantiles[q].size() != quantile.size()) quantile.clear();
    for (size_t i = 0; i < quantile.size(); ++i) {
      quantile[i] = (quantile[i] * old_count + episode.quantiles[q][i] * new_count) / count;
    }
  }
  total.count += episode.count;
}

int64_t StatisticsSize(const Feature& feature) {
  return feature.IsPicture() ? 3 : feature.Elements();
}

std::string StatisticsText(const Statistics& statistics, const std::vector<Feature>& features) {
  Json json = Json::object();
  for (const Feature& feature : features) {
    const auto found = statistics.find(feature.name);
    if (found == statistics.end()) continue;
    Json& entry = json[feature.name];
    const auto rows = found->second.Rows();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i]->empty()) entry[kStatistics[i]] = Shaped(*rows[i], feature.IsPicture());
      if (i == 3) entry["count"] = Json::array({found->second.count});
    }
  }
  return json.dump(4) + "\n";
}

Statistics ReadStatistics(const std::string& path, const std::vector<Feature>& features) {
  const Json json = ReadJson(path, {.bytes = size_t{64} << 20, .depth = 16});
  Statistics statistics;
  for (const Feature& feature : features) {
    const auto entry = json.find(feature.name);
    if (entry == json.end()) continue;
    FeatureStatistics& of = statistics[feature.name];
    const auto rows = of.Rows();
    const auto read = [&](const char* name, size_t size, bool required) {
      std::vector<double> values;
      bool numbers = true;
      const auto found = entry->find(name);
      if (found != entry->end()) Flatten(*found, values, numbers);
      if (!numbers || (values.empty() ? required : values.size() != size)) {
        throw BadInput(path + ": \"" + feature.name + "\": \"" + name + "\" has not the " +
                       std::to_string(size) + " numbers of the feature");
      }
      return values;
    };
    if (!entry->is_object()) throw BadInput(path + ": \"" + feature.name + "\" is no object");
    const auto size = static_cast<size_t>(StatisticsSize(feature));
    for (size_t i = 0; i < rows.size(); ++i) *rows[i] = read(kStatistics[i], size, i < 4);
    const double count = read("count", 1, true)[0];
    if (!(count >= 1 && count <= kMostFrames)) {
      throw BadInput(path + ": \"" + feature.name + "\": \"count\" is not a number of frames");
    }
    of.count = static_cast<int64_t>(count);
  }
  return statistics;
}

}  // namespace mjp::datasets

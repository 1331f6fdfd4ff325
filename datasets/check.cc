#include "datasets/check.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "datasets/format/statistics.h"
#include "datasets/places.h"
#include "datasets/recording/spool.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostProblems = 100;
// LeRobot sums in single precision, an error that grows with the number of frames
constexpr double kStatisticsTolerance = 1e-3;

struct TooMany {};

class Checker {
 public:
  Checker(Dataset& dataset, const CheckOptions& options) : dataset_(dataset), options_(options) {}

  CheckResult Run() {
    try {
      for (size_t episode = 0; episode < dataset_.episodes().size(); ++episode) {
        CheckEpisode(episode);
        if (options_.progress && !options_.progress(static_cast<int64_t>(episode) + 1)) {
          result_.whole = false;
          return std::move(result_);
        }
      }
      CheckTasks();
      CheckTotalStatistics();
      CheckFiles();
    } catch (const TooMany&) {
      result_.whole = false;
    }
    return std::move(result_);
  }

 private:
  void Problem(const std::string& text) {
    if (std::ranges::find(result_.problems, text) != result_.problems.end()) return;
    result_.problems.push_back(text);
    if (result_.problems.size() >= kMostProblems) throw TooMany();
  }
  // A problem of an episode in its data file.
  void Problem(size_t episode, const std::string& text) {
    Problem(dataset_.DataPath(dataset_.episodes()[episode]) + ": episode " +
            std::to_string(episode) + ": " + text);
  }
  // Does `work`; what it throws is a problem.
  template <class Work>
  void Try(Work&& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.code() == ExitCode::kEnvironment) throw;
      Problem(error.what());
    }
  }

  void CheckEpisode(size_t episode) {
    for (const Feature& feature : dataset_.info().features) {
      if (feature.kind == Kind::kVideo) {
        Try([&] { CheckVideo(episode, feature); });
      } else if (feature.kind != Kind::kImage) {
        Try([&] { CheckValues(episode, feature); });
      }
      if (feature.IsPicture()) CheckPictures(episode, feature);
    }
  }

  void CheckValues(size_t episode, const Feature& feature) {
    const parquet::Column column = dataset_.Read(episode, feature);
    const parquet::Values& values = column.values;
    for (size_t i = 0; i < values.numbers.size(); ++i) {
      if (std::isfinite(values.numbers[i])) continue;
      const auto frame = static_cast<int64_t>(i) / feature.Elements();
      Problem(episode,
              "frame " + std::to_string(frame) + ": \"" + feature.name + "\" is not finite");
      break;
    }
    const auto [least, most] = feature.Range();
    for (size_t i = 0; i < values.ints.size(); ++i) {
      if (values.ints[i] >= least && values.ints[i] <= most) continue;
      const auto frame = static_cast<int64_t>(i) / feature.Elements();
      Problem(episode, "frame " + std::to_string(frame) + ": \"" + feature.name + "\" is " +
                           std::to_string(values.ints[i]) + ", which is no " + feature.dtype);
      break;
    }
    if (IsDefaultFeature(feature.name)) CheckDefault(episode, feature.name, values);
    if (feature.kind == Kind::kText) return;
    std::vector<double> numbers = values.numbers;
    numbers.insert(numbers.end(), values.ints.begin(), values.ints.end());
    const Episode& of = dataset_.episodes()[episode];
    const auto stored = of.statistics.find(feature.name);
    if (stored == of.statistics.end()) return;
    const FeatureStatistics computed = Summarise(numbers, feature.Elements());
    Compare(of.table + ": episode " + std::to_string(episode) + ": \"" + feature.name + "\"",
            stored->second, computed);
  }

  // The indices and the time that each data set has.
  void CheckDefault(size_t episode, const std::string& name, const parquet::Values& values) {
    const Episode& of = dataset_.episodes()[episode];
    if (name != "task_index") {
      const std::string wrong = WrongPlace(dataset_.info(), of, name, values);
      if (!wrong.empty()) Problem(episode, wrong);
      return;
    }
    for (int64_t frame = 0; frame < of.length; ++frame) {
      const std::string wrong = WrongTask(of, values.ints[static_cast<size_t>(frame)]);
      if (wrong.empty()) continue;
      return Problem(episode, "frame " + std::to_string(frame) + ": task_index is " + wrong);
    }
  }

  std::string WrongTask(const Episode& episode, int64_t task) const {
    const std::vector<std::string>& texts = dataset_.tasks().texts;
    const std::string number = std::to_string(task);
    if (task < 0 || task >= static_cast<int64_t>(texts.size())) {
      return number + "; meta/tasks.parquet has " + std::to_string(texts.size()) + " tasks";
    }
    const std::string& text = texts[static_cast<size_t>(task)];
    const bool listed =
        std::find(episode.tasks.begin(), episode.tasks.end(), text) != episode.tasks.end();
    return listed ? "" : number + ", \"" + text + "\", which meta/episodes does not list";
  }

  void CheckVideo(size_t episode, const Feature& feature) {
    const Episode& of = dataset_.episodes()[episode];
    const VideoPart& part = of.videos.at(feature.name);
    const std::string path = dataset_.VideoPath(of, feature);
    const double fps = dataset_.info().fps;
    const auto wanted = std::llround(part.to * fps);
    const int64_t frames = dataset_.Video(of, feature).frames();
    if (!(part.from >= 0 &&
          std::abs((part.to - part.from) * fps - static_cast<double>(of.length)) < 0.5)) {
      Problem(of.table + ": episode " + std::to_string(episode) + ": its part of " + path + " is " +
              std::to_string(part.to - part.from) + " s, its frames take " +
              std::to_string(static_cast<double>(of.length) / fps) + " s");
    } else if (frames < wanted) {
      Problem(path + ": episode " + std::to_string(episode) + ": has " + std::to_string(frames) +
              " frames, fewer than the " + std::to_string(wanted) + " up to the episode's end");
    }
  }

  void CheckPictures(size_t episode, const Feature& feature) {
    const int64_t length = dataset_.episodes()[episode].length;
    const int64_t step = options_.pictures ? 1 : std::max<int64_t>(1, length - 1);
    // the first that is wrong says it of the episode
    Try([&] {
      for (int64_t frame = 0; frame < length; frame += step) {
        dataset_.ReadPicture(episode, feature, frame);
      }
    });
  }

  // Stored statistics: quantiles are estimates, so their order alone is checked.
  void Compare(const std::string& where, const FeatureStatistics& stored,
               const FeatureStatistics& computed) {
    if (stored.count != computed.count) {
      return Problem(where + ": statistics are of " + std::to_string(stored.count) +
                     " frames, not " + std::to_string(computed.count));
    }
    for (size_t i = 0; i < stored.mean.size(); ++i) {
      const double scale = std::max({std::abs(computed.min[i]), std::abs(computed.max[i]), 1e-6});
      const double tolerance = kStatisticsTolerance * scale;
      for (size_t statistic = 0; statistic < 4; ++statistic) {
        const double have = (*stored.Rows()[statistic])[i];
        const double want = (*computed.Rows()[statistic])[i];
        if (!(std::abs(have - want) <= tolerance)) {
          return Problem(where + ": " + kStatistics[statistic] + " of element " +
                         std::to_string(i) + " is " + std::to_string(have) + ", of the data " +
                         std::to_string(want));
        }
      }
      double before = computed.min[i] - tolerance;
      for (const std::vector<double>& quantile : stored.quantiles) {
        if (quantile.empty()) continue;
        if (!(quantile[i] >= before - tolerance && quantile[i] <= computed.max[i] + tolerance)) {
          return Problem(where + ": its quantiles are not in order, or outside of min ... max");
        }
        before = quantile[i];
      }
    }
  }

  void CheckTasks() {
    const std::string path = dataset_.folder() + "/meta/tasks.parquet";
    if (dataset_.episodes().empty()) return;
    if (!dataset_.tasks().found_by_lerobot) {
      Problem(path +
              ": has no entry \"pandas\" that makes \"task\" its index, so LeRobot gives "
              "policies the number of the task instead of its text");
    }
    const auto count = static_cast<int64_t>(dataset_.tasks().texts.size());
    const std::string text = path + ": has " + std::to_string(count) + " tasks, info.json counts " +
                             std::to_string(dataset_.info().tasks);
    if (count < dataset_.info().tasks) Problem(text);
    if (count > dataset_.info().tasks) result_.notes.push_back(text);
    std::set<std::string> texts;
    for (const std::string& task : dataset_.tasks().texts) {
      if (!texts.insert(task).second) Problem(path + ": has the task \"" + task + "\" twice");
    }
  }

  // All episodes' statistics together.
  Statistics Total(const std::vector<Episode>& more) const {
    Statistics total;
    for (const auto* episodes : {&dataset_.episodes(), &more}) {
      for (const Episode& episode : *episodes) {
        for (const auto& [name, of] : episode.statistics) Combine(total[name], of);
      }
    }
    return total;
  }

  void CheckTotalStatistics() {
    const std::string path = dataset_.folder() + "/meta/stats.json";
    if (dataset_.episodes().empty()) return;
    if (!fs::exists(path)) {
      return Problem(path + ": is missing, and a policy cannot be trained without statistics");
    }
    Try([&] {
      const Statistics stored = ReadStatistics(path, dataset_.info().features);
      Statistics total = Total({});
      // a writer that was killed had already added the episode that info.json does not count
      const auto index = stored.find("index");
      if (index != stored.end() && index->second.count > dataset_.info().frames) {
        total = Total(dataset_.leftovers());
      }
      for (const Feature& feature : dataset_.info().features) {
        const auto found = stored.find(feature.name);
        const auto computed = total.find(feature.name);
        if (found == stored.end()) {
          if (feature.kind != Kind::kText) Problem(path + ": has no \"" + feature.name + "\"");
        } else if (computed != total.end()) {
          Compare(path + ": \"" + feature.name + "\"", found->second, computed->second);
        }
      }
    });
  }

  // The data files that episodes are in, with the rows that they have there, and those that LeRobot
  // loads besides (0 rows), in LeRobot's order.
  std::map<fs::path, int64_t> DataFiles() const {
    std::map<fs::path, int64_t> files;
    std::error_code none;
    for (const auto& folder : fs::directory_iterator(dataset_.folder() + "/data", none)) {
      for (const auto& file : fs::directory_iterator(folder.path(), none)) {
        if (file.path().extension() == ".parquet") files[file.path().lexically_normal()] = 0;
      }
    }
    for (const Episode& episode : dataset_.episodes()) {
      files[fs::path(dataset_.DataPath(episode)).lexically_normal()] =
          dataset_.FirstRow(episode) + episode.length;
    }
    return files;
  }

  void CheckColumns(const parquet::Reader& file) {
    std::set<std::string> unlisted;
    for (const parquet::Leaf& leaf : file.metadata().leaves) {
      if (!dataset_.info().Find(leaf.column)) unlisted.insert(leaf.column);
    }
    for (const std::string& column : unlisted) {
      Problem(file.name() + ": has the column \"" + column + "\", which info.json does not list");
    }
  }

  // LeRobot finds a row by its place among those of all data files, one behind the other: a row of
  // no episode moves all that are behind it, and harms nobody at the end.
  void CheckDataFiles() {
    std::vector<std::string> surplus;  // in the files so far
    for (const auto& [path, wanted] : DataFiles()) {
      if (wanted > 0) {
        for (const std::string& text : surplus) {
          Problem(text + ", which LeRobot takes for the beginning of " + path.string() +
                  "; take them out");
        }
        surplus.clear();
      }
      Try([&, &path = path, &wanted = wanted] {
        const parquet::Reader file(path);
        CheckColumns(file);
        const int64_t more = file.metadata().rows - wanted;
        if (more <= 0) return;
        surplus.push_back(path.string() + ": has " + std::to_string(more) +
                          (wanted > 0 ? " rows behind its last episode" : " rows of no episode"));
      });
    }
    result_.notes.insert(result_.notes.end(), surplus.begin(), surplus.end());
  }

  void CheckFiles() {
    CheckDataFiles();
    if (!dataset_.leftovers().empty()) {
      result_.notes.push_back(dataset_.leftovers().back().table + ": lists " +
                              std::to_string(dataset_.leftovers().size()) +
                              " episodes that info.json does not count");
    }
    for (const std::string& episode : SpooledEpisodes(dataset_.folder())) {
      result_.notes.push_back(episode + ": an episode that waits to be put into the data set");
    }
  }

  Dataset& dataset_;
  const CheckOptions& options_;
  CheckResult result_;
};

}  // namespace

CheckResult Check(Dataset& dataset, const CheckOptions& options) {
  return Checker(dataset, options).Run();
}

}  // namespace mjp::datasets

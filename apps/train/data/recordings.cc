#include "apps/train/data/recordings.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/npy.h"

namespace mjp::app {
namespace {

std::vector<double> ReadColumns(const std::string& path, int64_t columns) {
  const NpyArray array = ReadNpy(path);
  if (array.shape.size() != 2 || array.shape[1] != columns || array.shape[0] == 0) {
    throw mjp::BadInput(path + ": not an array of rows of " + std::to_string(columns) + " numbers");
  }
  return array.ToDoubles();
}

}  // namespace

std::vector<DemonstrationRow> LoadRecordings(const std::string& prefix) {
  const std::vector<double> states = ReadColumns(prefix + "_state.npy", 5);
  const std::vector<double> actions = ReadColumns(prefix + "_action.npy", 2);
  const std::string ends_path = prefix + "_episode_ends.npy";
  const std::vector<int64_t> ends = ReadNpy(ends_path).ToIntegers(ends_path);
  const auto count = static_cast<int64_t>(states.size() / 5);
  if (static_cast<int64_t>(actions.size() / 2) != count || ends.empty() || ends.back() != count ||
      !std::ranges::is_sorted(ends, std::less_equal<>()) || ends.front() <= 0) {
    throw mjp::BadInput(ends_path + ": its ends do not rise to the " + std::to_string(count) +
                        " rows of the states and as many actions");
  }
  std::vector<DemonstrationRow> rows;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    for (int64_t i = begin; i < end; ++i) {
      DemonstrationRow row;
      const int64_t before = std::max(begin, i - 1);
      std::copy_n(&states[5 * before], 5, row.previous);
      std::copy_n(&states[5 * i], 5, row.state);
      // before the first action the agent stays where it is
      std::copy_n(i > begin ? &actions[2 * before] : &states[5 * i], 2, row.previous_target);
      for (int64_t k = 0; k < kDemonstratedTargets; ++k) {
        std::copy_n(&actions[2 * std::min(i + k, end - 1)], 2, row.targets[k]);
      }
      rows.push_back(row);
    }
    begin = end;
  }
  return rows;
}

}  // namespace mjp::app

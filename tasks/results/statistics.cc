#include "tasks/results/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"

namespace mjp::app {

Interval Wilson95(int successes, int n) {
  if (successes < 0 || successes > n) {
    throw mjp::BadInput(std::to_string(successes) + " successes of " + std::to_string(n) +
                        " are no proportion; the file that says so is damaged");
  }
  if (n == 0) return {0, 1};
  constexpr double z = 1.959963984540054;  // 97.5 % quantile of the normal distribution
  const double p = static_cast<double>(successes) / n;
  const double denominator = 1 + z * z / n;
  const double center = (p + z * z / (2.0 * n)) / denominator;
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4.0 * n * n)) / denominator;
  // at the ends the bound is exact: rounding must not push it past 0 or 1
  return {successes == 0 ? 0.0 : center - half, successes == n ? 1.0 : center + half};
}

bool ClearlyWorse(const Proportion& one, const Proportion& other) {
  return Wilson95(one.successes, one.n).high < Wilson95(other.successes, other.n).low;
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace mjp::app

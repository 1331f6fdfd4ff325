#ifndef TASKS_RESULTS_STATISTICS_H_
#define TASKS_RESULTS_STATISTICS_H_

#include <vector>

namespace mjp::app {

struct Interval {
  double low = 0, high = 0;
};

struct Proportion {
  int successes = 0, n = 0;  // so many of n
};

// Wilson score interval of a proportion, 95 %: successes of n. n = 0 gives [0, 1]. Throws Error
// for more successes than n, or fewer than none.
Interval Wilson95(int successes, int n);

// Whether chance does not explain that `one` is worse than `other`: its 95 % interval lies below.
bool ClearlyWorse(const Proportion& one, const Proportion& other);

// Quantile q in [0, 1] with linear interpolation between order statistics; 0 for no values.
double Quantile(std::vector<double> values, double q);

// Arithmetic mean; 0 for no values.
double Mean(const std::vector<double>& values);

}  // namespace mjp::app

#endif  // TASKS_RESULTS_STATISTICS_H_

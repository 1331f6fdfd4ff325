#ifndef TASKS_RESULTS_STATISTICS_H_
#define TASKS_RESULTS_STATISTICS_H_

#include <vector>

namespace mjp::app {

struct Interval {
  double low = 0, high = 0;
};

// Wilson score interval of a proportion, 95 %: successes of n. n = 0 gives [0, 1].
Interval Wilson95(int successes, int n);

// Quantile q in [0, 1] with linear interpolation between order statistics; 0 for no values.
double Quantile(std::vector<double> values, double q);

// Arithmetic mean; 0 for no values.
double Mean(const std::vector<double>& values);

}  // namespace mjp::app

#endif  // TASKS_RESULTS_STATISTICS_H_

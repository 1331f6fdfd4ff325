#ifndef TASKS_RESULTS_SMOOTHNESS_H_
#define TASKS_RESULTS_SMOOTHNESS_H_

#include <span>
#include <vector>

namespace mjp::app {

// How smoothly the policy's actions follow each other, in its units per control step. Lengths are
// Euclidean, over all numbers of an action.
struct Smoothness {
  double jerk = 0;         // mean length of a(t) - 3 a(t-1) + 3 a(t-2) - a(t-3)
  double border_jump = 0;  // mean length of a(t) - 2 a(t-1) + a(t-2) where a chunk begins
};

// Measures the actions of one episode.
class SmoothnessMeter {
 public:
  // The next action, always of as many numbers; `border`: it is the first of its chunk.
  void Add(std::span<const double> action, bool border);
  // Zeros where there were too few actions.
  Smoothness Value() const;

 private:
  static constexpr int kOrders = 4;
  std::vector<double> differences_[kOrders];  // of the last action, by order
  int actions_ = 0, jerks_ = 0, borders_ = 0;
  double jerk_ = 0, jump_ = 0;  // sums
};

}  // namespace mjp::app

#endif  // TASKS_RESULTS_SMOOTHNESS_H_

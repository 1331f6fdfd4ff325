#include "tasks/results/smoothness.h"

#include <cmath>
#include <utility>

namespace mjp::app {
namespace {

double Length(const std::vector<double>& v) {
  double squared = 0;
  for (const double x : v) squared += x * x;
  return std::sqrt(squared);
}

}  // namespace

void SmoothnessMeter::Add(std::span<const double> action, bool border) {
  std::vector<double> difference(action.begin(), action.end());
  for (int order = 0; order < kOrders && order <= actions_; ++order) {
    std::swap(differences_[order], difference);  // `difference` is now the one before
    if (order == actions_ || order + 1 == kOrders) break;
    for (size_t i = 0; i < difference.size(); ++i) {
      difference[i] = differences_[order][i] - difference[i];
    }
  }
  ++actions_;
  if (actions_ >= 3 && border) {
    jump_ += Length(differences_[2]);
    ++borders_;
  }
  if (actions_ >= 4) {
    jerk_ += Length(differences_[3]);
    ++jerks_;
  }
}

Smoothness SmoothnessMeter::Value() const {
  return {jerks_ > 0 ? jerk_ / jerks_ : 0, borders_ > 0 ? jump_ / borders_ : 0};
}

}  // namespace mjp::app

#ifndef TESTS_TASKS_PUSHT_FIDELITY_H_
#define TESTS_TASKS_PUSHT_FIDELITY_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tasks/pusht/coverage.h"
#include "tasks/pusht/physics/state.h"

// How far a simulation strays from another one, as NUMERICS.md states it.

namespace mjp_test {

struct EpisodeError {
  double worst_block = 0;           // pixels between the block origins, worst row
  double final_block = 0;           // the same, last row
  double worst_agent = 0;           // pixels between the agents, worst row
  double max_coverage[2] = {0, 0};  // of the two trajectories
};

// Compares two trajectories row by row. Not-a-number counts as infinitely far.
inline EpisodeError Compare(std::span<const mjp::app::State> a,
                            std::span<const mjp::app::State> b) {
  const auto far = [](double dx, double dy) {
    const double d = std::hypot(dx, dy);
    return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
  };
  EpisodeError error;
  for (size_t i = 0; i < a.size(); ++i) {
    error.final_block = far(a[i].block_x - b[i].block_x, a[i].block_y - b[i].block_y);
    error.worst_block = std::max(error.worst_block, error.final_block);
    error.worst_agent =
        std::max(error.worst_agent, far(a[i].agent_x - b[i].agent_x, a[i].agent_y - b[i].agent_y));
    error.max_coverage[0] = std::max(error.max_coverage[0], mjp::app::Coverage(a[i]));
    error.max_coverage[1] = std::max(error.max_coverage[1], mjp::app::Coverage(b[i]));
  }
  return error;
}

// Summary over episodes.
struct Fidelity {
  double median_worst, median_final, worst_agent;
  int other_side;  // episodes whose greatest coverage is on the other side of `threshold`
};

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

inline Fidelity Summarise(const std::vector<EpisodeError>& errors, double threshold) {
  std::vector<double> worst, last;
  Fidelity summary{0, 0, 0, 0};
  for (const EpisodeError& e : errors) {
    worst.push_back(e.worst_block);
    last.push_back(e.final_block);
    summary.worst_agent = std::max(summary.worst_agent, e.worst_agent);
    summary.other_side += (e.max_coverage[0] > threshold) != (e.max_coverage[1] > threshold);
  }
  summary.median_worst = Median(worst);
  summary.median_final = Median(last);
  return summary;
}

}  // namespace mjp_test

#endif  // TESTS_TASKS_PUSHT_FIDELITY_H_

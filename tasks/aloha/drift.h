#ifndef TASKS_ALOHA_DRIFT_H_
#define TASKS_ALOHA_DRIFT_H_

#include <cmath>

#include "tasks/aloha/transfer_cube.h"
#include "tasks/physics/random_stream.h"

namespace mjp::app {

// A disturbance of actions that changes slowly: it forgets half of itself in 14 control steps.
class Drift {
 public:
  // Standard deviations: of a joint's target, radians; of a hand's opening.
  Drift(double joint, double hand) : joint_(joint), hand_(hand) {}

  void Add(RandomStream& random, AlohaNumbers& action) {
    constexpr double kKept = 0.95;
    const double fresh = std::sqrt(1 - kKept * kKept);
    for (size_t i = 0; i < action.size(); ++i) {
      const double deviation = i % 7 == kArmJoints ? hand_ : joint_;
      drift_[i] = kKept * drift_[i] + fresh * deviation * random.Normal();
      action[i] += drift_[i];
    }
  }

 private:
  double joint_, hand_;
  AlohaNumbers drift_ = {};
};

}  // namespace mjp::app

#endif  // TASKS_ALOHA_DRIFT_H_

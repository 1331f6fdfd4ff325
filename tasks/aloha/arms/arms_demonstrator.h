#ifndef TASKS_ALOHA_ARMS_ARMS_DEMONSTRATOR_H_
#define TASKS_ALOHA_ARMS_ARMS_DEMONSTRATOR_H_

#include <algorithm>
#include <string>

#include "base/error.h"
#include "tasks/aloha/arms/arm.h"
#include "tasks/demonstration/demonstrator.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// A PlanFollower as the demonstrator of a task file, each episode in a style that
// `draw_style`(seed) gives.
template <class Expert, auto draw_style>
class ArmsDemonstrator : public Demonstrator {
 public:
  // Throws Error where the file's actions are not ALOHA's, naming `example`, a file whose are.
  ArmsDemonstrator(const TaskFile& file, const char* example) : expert_(file.model()) {
    const int numbers = file.policy().controls.action_size();
    if (numbers == static_cast<int>(AlohaNumbers().size())) return;
    throw BadInput(file.path() + ": the expert's actions have 14 numbers, the file's " +
                   std::to_string(numbers) + "; see " + example);
  }

  void Begin(uint32_t seed, const mjModel*, const mjData*) override {
    expert_.Begin(draw_style(seed));
  }
  void Act(const mjModel*, const mjData* data, std::span<mjtNum> action) override {
    std::ranges::copy(expert_.Act(data), action.begin());
  }

 private:
  Expert expert_;
};

}  // namespace mjp::app

#endif  // TASKS_ALOHA_ARMS_ARMS_DEMONSTRATOR_H_

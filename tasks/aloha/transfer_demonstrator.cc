#include "tasks/aloha/transfer_demonstrator.h"

#include <algorithm>

#include "base/error.h"
#include "tasks/aloha/expert.h"

namespace mjp::app {
namespace {

class TransferDemonstrator : public Demonstrator {
 public:
  explicit TransferDemonstrator(const TaskFile& file) : expert_(file.model()) {
    const int numbers = file.policy().controls.action_size();
    if (numbers == static_cast<int>(AlohaNumbers().size())) return;
    throw BadInput(file.path() + ": the expert's actions have 14 numbers, the file's " +
                   std::to_string(numbers) + "; see models/aloha_transfer_cube.xml");
  }

  void Begin(uint32_t seed, const mjModel*, const mjData*) override {
    expert_.Begin(DrawStyle(seed));
  }
  void Act(const mjModel*, const mjData* data, std::span<mjtNum> action) override {
    std::ranges::copy(expert_.Act(data), action.begin());
  }

 private:
  TransferExpert expert_;
};

}  // namespace

TaskCodeEntry AlohaTransferCode() {
  return {false, "aloha_transfer_cube", nullptr,
          [](const TaskFile& file) { return std::make_unique<TransferDemonstrator>(file); }};
}

}  // namespace mjp::app

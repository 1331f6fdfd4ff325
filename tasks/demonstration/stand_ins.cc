#include "tasks/demonstration/stand_ins.h"

#include <algorithm>
#include <vector>

#include "tasks/demonstration/action_ranges.h"
#include "tasks/physics/random_stream.h"

namespace mjp::app {
namespace {

class Hold : public Demonstrator {
 public:
  explicit Hold(const ControlBinding& controls)
      : controls_(controls), action_(static_cast<size_t>(controls.action_size())) {}

  void Begin(uint32_t, const mjModel*, const mjData* data) override {
    ActionOf(controls_, data, action_);
  }
  void Act(const mjModel*, const mjData*, std::span<mjtNum> action) override {
    std::ranges::copy(action_, action.begin());
  }

 private:
  const ControlBinding& controls_;
  std::vector<mjtNum> action_;
};

class Noise : public Demonstrator {
 public:
  explicit Noise(std::vector<ActionRange> ranges)
      : ranges_(std::move(ranges)), random_(0), action_(ranges_.size()) {}

  void Begin(uint32_t seed, const mjModel*, const mjData*) override {
    random_ = RandomStream(seed, kStream);
    Draw();
  }
  void Act(const mjModel*, const mjData*, std::span<mjtNum> action) override {
    if (random_.Below(kSteps) == 0) Draw();
    std::ranges::copy(action_, action.begin());
  }

 private:
  static constexpr uint64_t kStream = 31;  // beside those of starts and planners
  static constexpr int kSteps = 8;

  void Draw() {
    for (size_t i = 0; i < ranges_.size(); ++i) {
      action_[i] = ranges_[i].low + (ranges_[i].high - ranges_[i].low) * random_.Uniform();
    }
  }

  std::vector<ActionRange> ranges_;
  RandomStream random_;
  std::vector<mjtNum> action_;
};

}  // namespace

std::unique_ptr<Demonstrator> MakeHold(const TaskFile& file) {
  return std::make_unique<Hold>(file.policy().controls);
}

std::unique_ptr<Demonstrator> MakeNoise(const TaskFile& file) {
  return std::make_unique<Noise>(ActionRanges(file));
}

}  // namespace mjp::app

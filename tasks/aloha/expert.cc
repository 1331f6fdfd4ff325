#include "tasks/aloha/expert.h"

#include <algorithm>
#include <cmath>

namespace mjp::app {
namespace {

constexpr double kMoved = 0.006;     // metres: the cube is not where the hand goes
constexpr double kTurned = 7;        // degrees
constexpr size_t kShortestTry = 10;  // control steps that a plan is followed for at least
constexpr int kPatience = 5;         // control steps without the cube in the hand

}  // namespace

TransferExpert::TransferExpert(const mjModel* model) : model_(model), hand_over_(model) {}

void TransferExpert::Begin(const Style& style) {
  style_ = style;
  plan_ = Plan();
  step_ = 0;
  lost_ = 0;
}

// Whether what the plan relies on is not so.
bool TransferExpert::Failed(const Situation& now) {
  if (plan_.stage == Stage::kPick) {
    if (step_ >= static_cast<size_t>(plan_.closing) || step_ < kShortestTry) return false;
    const double moved =
        std::hypot(now.cube.pos[0] - plan_.cube.pos[0], now.cube.pos[1] - plan_.cube.pos[1]);
    const double turned = std::remainder(GripOf(now.cube).yaw - GripOf(plan_.cube).yaw, 90);
    return moved > kMoved || std::abs(turned) > kTurned;
  }
  const bool held = plan_.stage == Stage::kGive ? now.holds[kRight] : now.holds[kLeft];
  lost_ = held ? 0 : lost_ + 1;
  return lost_ > kPatience;
}

AlohaNumbers TransferExpert::Act(const mjData* data) {
  const Situation now = ReadSituation(hand_over_.scene(), model_, data);
  const bool ended = step_ >= plan_.arms[kLeft].size() && plan_.stage != Stage::kRest;
  if (Failed(now) || ended) {
    plan_ = hand_over_.Make(now, style_);
    step_ = 0;
    lost_ = 0;
  }
  const size_t at = std::min(step_++, plan_.arms[kLeft].size() - 1);
  const ArmPose& left = plan_.arms[kLeft][at];
  const ArmPose& right = plan_.arms[kRight][at];
  const std::array<JointAngles, 2> angles =
      hand_over_.kinematics().Uplift(hand_over_.scene().arms, {left.angles, right.angles});
  AlohaNumbers action;
  std::copy(angles[kLeft].begin(), angles[kLeft].end(), action.begin());
  std::copy(angles[kRight].begin(), angles[kRight].end(), action.begin() + 7);
  action[6] = left.opening;
  action[13] = right.opening;
  return action;
}

}  // namespace mjp::app

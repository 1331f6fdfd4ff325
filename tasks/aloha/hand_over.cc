#include "tasks/aloha/hand_over.h"

#include <algorithm>
#include <cmath>

#include "tasks/physics/random_stream.h"

namespace mjp::app {
namespace {

constexpr double kPickDepth = 0.010;  // of the tool behind the cube's centre, metres
constexpr double kGiveDepth = 0.012;
constexpr double kCubeHeight = 0.02;  // of the centre of a cube that lies, metres
constexpr double kLying = 0.036;      // of its centre, on an edge or a corner too
constexpr int kPause = 25;            // control steps before the next look at a lost cube
constexpr int kPickClosing = 24, kGiveClosing = 28;  // control steps
constexpr int kOpening = 22;
constexpr double kLift = 0.06;       // metres, off the table
constexpr double kMoved = 0.006;     // metres: the cube is not where the hand goes
constexpr double kTurned = 7;        // degrees
constexpr size_t kShortestTry = 10;  // control steps that a plan is followed for at least

// The left hand at the meeting: its fingers above and below the cube.
void Sideways(mjtNum* quat, double yaw) {
  mjtNum turn[4], roll[4];
  AxisQuat(turn, 0, 0, 1, yaw);
  AxisQuat(roll, 1, 0, 0, 90);
  mju_mulQuat(quat, turn, roll);
}

// The ways to turn the right hand that show a cube upright which it holds as `held`, the nearest to
// `usual` first. The fingers stay at the cube's sides, the hand above it or to its right.
std::vector<Turn> WaysToShow(const Frame& held, const mjtNum* usual) {
  std::vector<Turn> ways = WaysToTurn(held, usual);
  std::erase_if(ways, [](const Turn& way) {
    mjtNum axes[9];
    mju_quat2Mat(axes, way.data());
    const mjtNum ahead_x = axes[0], ahead_z = axes[6], opens_y = axes[4];
    return !(std::abs(opens_y) > 0.8 && ahead_x < 0.05 && ahead_z < 0.05);
  });
  return ways;
}

// The left hand is sideways: a cube that fell may lie on its finger, and the hand has but to close.
bool LiesOnLeftHand(const Situation& now) {
  return now.touches[kLeft] && !now.touches[kRight] && !now.on_table && now.cube.pos[2] > kLying;
}

}  // namespace

Style DrawStyle(uint64_t seed) {
  RandomStream random(seed);
  Style style;
  style.pitch = random.Uniform(65, 69);
  style.height = random.Uniform(0.06f, 0.09f);
  style.meet[0] = random.Uniform(-0.03f, 0.03f);
  style.meet[1] = random.Uniform(0.45f, 0.55f);
  style.meet[2] = random.Uniform(0.22f, 0.30f);
  style.distance = random.Uniform(0.10f, 0.13f);
  style.yaw = random.Uniform(-1, 1);
  style.right_away[0] = random.Uniform(0.09f, 0.12f);
  style.right_away[1] = random.Uniform(0.03f, 0.07f);
  style.left_away[0] = random.Uniform(-0.14f, -0.08f);
  style.left_away[1] = random.Uniform(-0.04f, 0.04f);
  style.left_away[2] = random.Uniform(-0.03f, 0.03f);
  for (double& pace : style.pace) pace = random.Uniform(0.85f, 1.2f);
  return style;
}

HandOver::HandOver(const mjModel* model)
    : model_(model), scene_(FindCubeScene(model)), kinematics_(model) {}

// Whether the right hand has the cube between two faces: one held by its edges slips.
bool HandOver::HeldByFaces(const Situation& now) {
  constexpr double kAligned = 0.94;  // cosine of 20 degrees
  mjtNum hand[9], cube[9];
  mju_quat2Mat(hand, kinematics_.ToolPose(scene_.arms[kRight], now.arms[kRight].angles).quat);
  mju_quat2Mat(cube, now.cube.quat);
  double best = 0;
  for (int axis = 0; axis < 3; ++axis) {
    double along = 0;
    for (int i = 0; i < 3; ++i) along += hand[3 * i + 1] * cube[3 * i + axis];
    best = std::max(best, std::abs(along));
  }
  return best > kAligned;
}

Plan HandOver::Make(const Situation& now, const Style& style) {
  Plan plan;
  plan.cube = now.cube;
  if (now.holds[kLeft] && now.touches[kRight]) {
    plan.stage = Stage::kRelease;
    PlanRelease(now, style, plan);
  } else if (now.holds[kLeft] || LiesOnLeftHand(now)) {
    plan.stage = Stage::kRest;
    PlanRest(now, style, plan);
  } else if (now.holds[kRight] && HeldByFaces(now)) {
    plan.stage = Stage::kGive;
    PlanGive(now, style, plan);
  } else if (PlanPick(now, style, kRight, plan) || PlanPick(now, style, kLeft, plan)) {
    plan.stage = Stage::kPick;
  } else {
    for (const int side : {kLeft, kRight}) plan.arms[side].assign(kPause, now.arms[side]);
  }
  return plan;
}

Doubt HandOver::Judge(const Plan& plan, size_t step, const Situation& now) const {
  if (plan.stage == Stage::kPick) {
    if (step >= static_cast<size_t>(plan.closing) || step < kShortestTry) return Doubt::kNone;
    const double moved =
        std::hypot(now.cube.pos[0] - plan.cube.pos[0], now.cube.pos[1] - plan.cube.pos[1]);
    const double turned = std::remainder(GripOf(now.cube).yaw - GripOf(plan.cube).yaw, 90);
    return moved > kMoved || std::abs(turned) > kTurned ? Doubt::kWrong : Doubt::kNone;
  }
  const bool held = plan.stage == Stage::kGive ? now.holds[kRight] : now.holds[kLeft];
  return held ? Doubt::kNone : Doubt::kSlipping;
}

// Where the left hand waits for the right one.
Frame HandOver::WaitingFrame(const Style& style) const {
  Frame frame = At(style.meet[0], style.meet[1], style.meet[2]);
  const mjtNum* base = scene_.arms[kLeft].base;
  const double bearing = std::atan2(style.meet[1] - base[1], style.meet[0] - base[0]);
  Sideways(frame.quat, bearing * 180 / mjPI + style.yaw);
  return Ahead(frame, -style.distance);
}

JointAngles HandOver::WaitingAngles(const Style& style) {
  const Frame waiting = WaitingFrame(style);
  JointAngles angles = kHome;
  kinematics_.Solve(scene_.arms[kLeft], waiting, kSolverIterations, angles);
  return angles;
}

// How a hand comes down on the cube. Returns whether it can.
bool HandOver::FindCubeGrasp(const Situation& now, const Style& style, Side hand, Grasp& grasp) {
  const Grip grip = GripOf(now.cube);
  const double yaw = (hand == kRight ? 180 : 0) + grip.yaw;
  // a cube that falls will lie
  const double height = now.cube.pos[2] < kLying ? now.cube.pos[2] : kCubeHeight;
  Approach approach = {
      {now.cube.pos[0], now.cube.pos[1], height}, {yaw}, style.pitch, kPickDepth, style.height};
  if (grip.flat) approach.yaws.push_back(yaw + (grip.yaw > 0 ? -90.0 : 90.0));
  return FindGrasp(kinematics_, scene_.arms[hand], approach, grasp);
}

bool HandOver::PlanPick(const Situation& now, const Style& style, Side hand, Plan& plan) {
  Grasp grasp;
  if (!FindCubeGrasp(now, style, hand, grasp)) return false;
  Track picks(scene_.arms[hand], kinematics_, Opened(now.arms[hand], now.touches[hand]),
              style.pace[hand]);
  RaiseWhereLow(picks);
  picks.Turn(grasp.above, 1);
  picks.Line(grasp.tool, 1);
  picks.Wait(kSettle, 1);
  plan.closing = picks.length();
  picks.Wait(kPickClosing, 0);

  // the other hand gets ready, or out of the way
  const Side other = hand == kRight ? kLeft : kRight;
  Track waits(scene_.arms[other], kinematics_, Opened(now.arms[other], now.touches[other]),
              style.pace[other]);
  RaiseWhereLow(waits);
  const bool room = hand == kRight && now.cube.pos[0] > 0;
  waits.Turn(room ? WaitingAngles(style) : kHome, 1);
  MakeEqualLong(picks, waits);
  plan.arms[hand] = picks.poses();
  plan.arms[other] = waits.poses();
  return true;
}

void HandOver::PlanGive(const Situation& now, const Style& style, Plan& plan) {
  Track right(scene_.arms[kRight], kinematics_, Closed(now.arms[kRight]), style.pace[kRight]);
  Track left(scene_.arms[kLeft], kinematics_, now.arms[kLeft], style.pace[kLeft]);
  const Frame hand = right.tool();
  // the cube as the hand has it
  const Frame held = Compose(Inverse(hand), now.cube);
  const Frame offset = At(-held.pos[0], -held.pos[1], -held.pos[2]);
  mjtNum usual[4];
  Downwards(usual, 180, style.pitch);
  JointAngles angles = now.arms[kRight].angles;
  for (const Turn& way : WaysToShow(held, usual)) {
    const Frame shown = Compose(FrameOf(style.meet, way.data()), offset);
    angles = Guess(scene_.arms[kRight], shown);
    if (kinematics_.Solve(scene_.arms[kRight], shown, kSolverIterations, angles)) break;
  }

  if (now.on_table || hand.pos[2] < kLift) right.Shift(0, 0, kLift, 0);
  right.Turn(angles, 0);

  const Frame waiting = WaitingFrame(style);
  if (mju_dist3(left.tool().pos, waiting.pos) > 0.01 || now.arms[kLeft].opening < 0.9) {
    RaiseWhereLow(left);
    left.Turn(WaitingAngles(style), 1);
  }
  left.WaitUntil(right.length() + kSettle);
  left.Line(Ahead(waiting, style.distance + kGiveDepth), 1);
  left.Wait(kSettle, 1);
  left.Wait(kGiveClosing, 0);
  MakeEqualLong(right, left);
  plan.arms = {left.poses(), right.poses()};
}

void HandOver::PlanRelease(const Situation& now, const Style& style, Plan& plan) {
  Track right(scene_.arms[kRight], kinematics_,
              now.holds[kRight] ? Closed(now.arms[kRight]) : now.arms[kRight], style.pace[kRight]);
  Track left(scene_.arms[kLeft], kinematics_, Closed(now.arms[kLeft]), style.pace[kLeft]);
  right.Wait(kOpening, 1);
  right.Shift(style.right_away[0], 0, style.right_away[1], 1);
  left.Wait(kOpening - kSettle, 0);
  left.Shift(style.left_away[0], style.left_away[1], style.left_away[2], 0);
  MakeEqualLong(right, left);
  plan.arms = {left.poses(), right.poses()};
}

void HandOver::PlanRest(const Situation& now, const Style& style, Plan& plan) {
  Track right(scene_.arms[kRight], kinematics_, now.arms[kRight], style.pace[kRight]);
  Track left(scene_.arms[kLeft], kinematics_, Closed(now.arms[kLeft]), style.pace[kLeft]);
  if (now.on_table) left.Shift(0, 0, 2 * kLift, 0);
  left.Wait(1, 0);
  MakeEqualLong(right, left);
  plan.arms = {left.poses(), right.poses()};
}

}  // namespace mjp::app

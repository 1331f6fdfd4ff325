#include "tasks/aloha/hand_over.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tasks/physics/random_stream.h"

namespace mjp::app {
namespace {

constexpr int kIterations = 200;      // of the inverse kinematics for the end of a long way
constexpr double kPickDepth = 0.010;  // of the tool behind the cube's centre, metres
constexpr double kGiveDepth = 0.012;
constexpr double kCubeHeight = 0.02;         // of the centre of a cube that lies, metres
constexpr double kLying = 0.036;             // of its centre, on an edge or a corner too
constexpr double kLow = 0.12, kFree = 0.16;  // heights of a tool, metres: in the way; out of it
constexpr int kPause = 25;                   // control steps before the next look at a lost cube
constexpr int kSettle = 4;                   // control steps before a hand closes
constexpr int kPickClosing = 24, kGiveClosing = 28;  // control steps
constexpr int kOpening = 22;
constexpr double kLift = 0.06;  // metres, off the table
constexpr JointAngles kHome = {0, -0.96, 1.16, 0, -0.3, 0};

double Radians(double degrees) { return degrees * mjPI / 180; }

void AxisQuat(mjtNum* quat, double x, double y, double z, double degrees) {
  const mjtNum axis[3] = {x, y, z};
  mju_axisAngle2Quat(quat, axis, Radians(degrees));
}

// A hand that points down by `pitch` degrees, turned about the vertical by `yaw` degrees.
void Downwards(mjtNum* quat, double yaw, double pitch) {
  mjtNum turn[4], tilt[4];
  AxisQuat(turn, 0, 0, 1, yaw);
  AxisQuat(tilt, 0, 1, 0, pitch);
  mju_mulQuat(quat, turn, tilt);
}

// The left hand at the meeting: its fingers above and below the cube.
void Sideways(mjtNum* quat, double yaw) {
  mjtNum turn[4], roll[4];
  AxisQuat(turn, 0, 0, 1, yaw);
  AxisQuat(roll, 1, 0, 0, 90);
  mju_mulQuat(quat, turn, roll);
}

// `frame` moved along its own x axis.
Frame Ahead(const Frame& frame, double distance) {
  Frame offset;
  offset.pos[0] = distance;
  return Compose(frame, offset);
}

Frame At(double x, double y, double z) {
  Frame frame;
  frame.pos[0] = x, frame.pos[1] = y, frame.pos[2] = z;
  return frame;
}

// Angles from which the inverse kinematics is to start: elbow up, the hand towards `target`, so
// that every plan takes the same branch of the solution.
JointAngles Guess(const Arm& arm, const Frame& target, bool sideways) {
  const double x = std::abs(target.pos[0] - arm.base[0]);
  const double waist = (arm.base[0] < 0 ? 1 : -1) * std::atan2(target.pos[1] - arm.base[1], x);
  if (sideways) return kHome;
  return {waist, -0.6, 1, 0, 0.8, 0};
}

// The 24 rotations by right angles.
std::vector<std::array<mjtNum, 4>> RightAngles() {
  std::vector<std::array<mjtNum, 4>> rotations;
  for (int axis = 0; axis < 6; ++axis) {
    mjtNum facing[4];  // turns x into one of the six directions
    if (axis < 4) AxisQuat(facing, 0, 0, 1, 90 * axis);
    if (axis >= 4) AxisQuat(facing, 0, 1, 0, axis == 4 ? 90 : -90);
    for (int roll = 0; roll < 4; ++roll) {
      mjtNum turn[4];
      AxisQuat(turn, 1, 0, 0, 90 * roll);
      mju_mulQuat(rotations.emplace_back().data(), facing, turn);
    }
  }
  return rotations;
}

// The ways to turn the right hand that show a cube upright which it holds as `held`, the nearest to
// `usual` first. The fingers stay at the cube's sides, the hand above it or to its right.
std::vector<std::array<mjtNum, 4>> WaysToShow(const Frame& held, const mjtNum* usual) {
  static const std::vector<std::array<mjtNum, 4>> rotations = RightAngles();
  std::vector<std::array<mjtNum, 4>> ways;
  mjtNum back[4];
  mju_negQuat(back, held.quat);
  for (const std::array<mjtNum, 4>& upright : rotations) {
    std::array<mjtNum, 4> way;
    mju_mulQuat(way.data(), upright.data(), back);
    mjtNum axes[9];
    mju_quat2Mat(axes, way.data());
    const mjtNum ahead_x = axes[0], ahead_z = axes[6], opens_y = axes[4];
    if (std::abs(opens_y) > 0.8 && ahead_x < 0.05 && ahead_z < 0.05) ways.push_back(way);
  }
  std::ranges::sort(ways, std::greater(), [usual](const std::array<mjtNum, 4>& way) {
    return std::abs(mju_dot(way.data(), usual, 4));
  });
  return ways;
}

// A hand that holds the cube goes on being closed, however far the cube keeps it open.
ArmPose Closed(const ArmPose& pose) { return {pose.angles, 0}; }

// A hand that keeps a cube from falling opens at once.
ArmPose Opened(const ArmPose& pose, bool touches) {
  return {pose.angles, touches ? 1 : pose.opening};
}

// The left hand is sideways: a cube that fell may lie on its finger, and the hand has but to close.
bool LiesOnLeftHand(const Situation& now) {
  return now.touches[kLeft] && !now.touches[kRight] && !now.on_table && now.cube.pos[2] > kLying;
}

// A tool near the table goes up before it goes anywhere, its hand opening.
void RaiseWhereLow(Track& track) {
  const double height = track.tool().pos[2];
  if (height < kLow) track.Shift(0, 0, kFree - height, 1);
}

void MakeEqualLong(Track& a, Track& b) {
  a.WaitUntil(b.length());
  b.WaitUntil(a.length());
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

HandOver::HandOver(const mjModel* model) : scene_(FindCubeScene(model)), kinematics_(model) {}

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
  JointAngles angles = Guess(scene_.arms[kLeft], waiting, true);
  kinematics_.Solve(scene_.arms[kLeft], waiting, kIterations, angles);
  return angles;
}

// How a hand comes down on the cube. Returns whether it can.
bool HandOver::FindGrasp(const Situation& now, const Style& style, Side hand, Grasp& grasp) {
  const Arm& arm = scene_.arms[hand];
  const Grip grip = GripOf(now.cube);
  const double forwards = hand == kRight ? 180 : 0;
  // a cube that falls will lie
  const double height = now.cube.pos[2] < kLying ? now.cube.pos[2] : kCubeHeight;
  for (const double turn : {0.0, grip.yaw > 0 ? -90.0 : 90.0}) {
    if (turn != 0 && !grip.flat) break;
    for (const double steeper : {0, 2, 6, 10, 15, 20, -5}) {
      Frame tool = At(now.cube.pos[0], now.cube.pos[1], height);
      Downwards(tool.quat, forwards + grip.yaw + turn, style.pitch + steeper);
      grasp.tool = Ahead(tool, kPickDepth);
      Frame high = grasp.tool;
      high.pos[2] += style.height;
      grasp.above = Guess(arm, high, false);
      if (!kinematics_.Solve(arm, high, kIterations, grasp.above)) continue;
      JointAngles down = grasp.above;
      if (kinematics_.Solve(arm, grasp.tool, kIterations, down)) return true;
    }
  }
  return false;
}

bool HandOver::PlanPick(const Situation& now, const Style& style, Side hand, Plan& plan) {
  Grasp grasp;
  if (!FindGrasp(now, style, hand, grasp)) return false;
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
  for (const std::array<mjtNum, 4>& way : WaysToShow(held, usual)) {
    const Frame shown = Compose(FrameOf(style.meet, way.data()), offset);
    angles = Guess(scene_.arms[kRight], shown, false);
    if (kinematics_.Solve(scene_.arms[kRight], shown, kIterations, angles)) break;
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

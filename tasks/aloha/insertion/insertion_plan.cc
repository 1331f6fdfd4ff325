#include "tasks/aloha/insertion/insertion_plan.h"

#include <algorithm>
#include <cmath>

#include "tasks/physics/random_stream.h"

namespace mjp::app {
namespace {

constexpr double kHalfLength = 0.06;                // of both parts, metres
constexpr double kPinLength = 0.04;                 // half of it
constexpr double kLyingHeight[2] = {0.022, 0.01};   // of the centre of a part that lies
constexpr double kToolHeight = 0.0115;              // of a hand at a part that lies, metres
constexpr double kMouth = 2 * kHalfLength + 0.008;  // between the centres, before the peg goes in
constexpr double kLift = 0.06;                      // metres, off the table
constexpr double kPress = 0.002;                    // metres: the peg is pushed beyond the pin
constexpr double kInLine = 0.012, kInLineTurn = 0.985;  // metres; cosine of 10 degrees
constexpr double kNear = 0.03;          // metres: of a part to the tool of the hand that has it
constexpr double kClosedOnPart = 0.85;  // opening of a hand, at most, that has a part
constexpr double kMoved = 0.008;        // metres: the part is not where the hand goes
constexpr double kApart = 0.18;         // metres: nearer parts are fetched one after the other
constexpr size_t kShortestTry = 10;     // control steps that a plan is followed for at least
constexpr int kClosing = 26;            // control steps
constexpr int kPause = 25;              // control steps before the next look at what is lost

void XAxis(const Frame& frame, mjtNum* axis) {
  const mjtNum x[3] = {1, 0, 0};
  mju_rotVecQuat(axis, x, frame.quat);
}

// The peg as the socket has it.
Frame PegInSocket(const InsertionSituation& now) {
  return Compose(Inverse(now.parts[kLeft]), now.parts[kRight]);
}

// Whether the parts are in a line.
bool InLine(const Frame& peg) {
  mjtNum axis[3];
  XAxis(peg, axis);
  return std::hypot(peg.pos[1], peg.pos[2]) < kInLine && std::abs(axis[0]) > kInLineTurn;
}

}  // namespace

InsertionStyle DrawInsertionStyle(uint64_t seed) {
  RandomStream random(seed);
  InsertionStyle style;
  style.pitch = random.Uniform(65, 69);
  style.height = random.Uniform(0.06f, 0.09f);
  style.meet[0] = random.Uniform(-0.03f, 0.03f);
  style.meet[1] = random.Uniform(0.47f, 0.53f);
  style.meet[2] = random.Uniform(0.17f, 0.23f);
  style.gap = random.Uniform(0.03f, 0.05f);
  for (double& pace : style.pace) pace = random.Uniform(0.85f, 1.2f);
  return style;
}

InsertionPlanner::InsertionPlanner(const mjModel* model)
    : model_(model), scene_(FindInsertionScene(model)), kinematics_(model) {}

Doubt InsertionPlanner::Judge(const Plan& plan, size_t step, const Situation& now) {
  const bool inserting = plan.stage == InsertionStage::kInsert;
  const bool resting = plan.stage == InsertionStage::kRest;
  if (resting && !now.inserted) return Doubt::kSlipping;
  if (!resting && !inserting && now.inserted) return Doubt::kWrong;
  for (const int side : {kLeft, kRight}) {
    const bool fetched = plan.closing[side] > 0;
    if (!fetched) {
      const bool held = Has(now, side) || plan.stage == InsertionStage::kFetch;
      if (!held) return Doubt::kSlipping;
      continue;
    }
    if (step < kShortestTry || step >= static_cast<size_t>(plan.closing[side])) continue;
    const mjtNum* was = plan.parts[side].pos;
    const mjtNum* is = now.parts[side].pos;
    if (std::hypot(is[0] - was[0], is[1] - was[1]) > kMoved) return Doubt::kWrong;
  }
  return Doubt::kNone;
}

// Whether a hand has its part. Fingers leave a peg that stands in the socket for moments: friction
// keeps them where it has pushed them, and the servos are weak.
bool InsertionPlanner::Has(const Situation& now, int side) {
  if (now.hold[side].holds[side]) return true;
  const Frame peg = PegInSocket(now);
  if (!InLine(peg) || std::abs(peg.pos[0]) > 2 * kHalfLength) return false;
  const Frame held = HeldIn(now, side);
  return mju_norm3(held.pos) < kNear && now.arms[side].opening < kClosedOnPart;
}

InsertionPlan InsertionPlanner::Make(const Situation& now, const Style& style) {
  Plan plan;
  plan.parts = now.parts;
  if (now.inserted) {
    plan.stage = InsertionStage::kRest;
    PlanInsert(now, style, plan);
  } else if (!Has(now, kLeft) || !Has(now, kRight)) {
    if (PlanFetch(now, style, plan)) {
      plan.stage = InsertionStage::kFetch;
    } else {
      for (const int side : {kLeft, kRight}) plan.arms[side].assign(kPause, now.arms[side]);
    }
  } else {
    const Frame peg = PegInSocket(now);
    const bool in_line = InLine(peg) && !now.hold[kLeft].on_table && !now.hold[kRight].on_table &&
                         std::abs(peg.pos[0]) < 2 * (kHalfLength + style.gap);
    plan.stage = in_line ? InsertionStage::kInsert : InsertionStage::kMeet;
    if (in_line) {
      PlanInsert(now, style, plan);
    } else {
      PlanMeet(now, style, plan);
    }
  }
  return plan;
}

Track InsertionPlanner::Begin(const Situation& now, const Style& style, int side, bool closed) {
  const ArmPose& pose = now.arms[side];
  const bool touches = now.hold[kLeft].touches[side] || now.hold[kRight].touches[side];
  return Track(scene_.arms[side], kinematics_, closed ? Closed(pose) : Opened(pose, touches),
               style.pace[side]);
}

bool InsertionPlanner::PlanFetch(const Situation& now, const Style& style, Plan& plan) {
  const bool near = mju_dist3(now.parts[kLeft].pos, now.parts[kRight].pos) < kApart;
  const bool alone = near && !Has(now, kLeft) && !Has(now, kRight);
  std::vector<Track> tracks;
  for (const int side : {kLeft, kRight}) {
    const bool has = Has(now, side);
    Track& track = tracks.emplace_back(Begin(now, style, side, has));
    if (has) {
      ShowUp(now, style, side, track);
      continue;
    }
    RaiseWhereLow(track);
    if (alone && side == kLeft) {
      track.Turn(kHome, 1);
      continue;
    }
    const Frame& part = now.parts[side];
    mjtNum axis[3];
    XAxis(part, axis);
    const double forwards = side == kRight ? 180 : 0;
    const double along = std::atan2(axis[1], axis[0]) * 180 / mjPI;
    const double yaw = forwards + std::remainder(along - forwards, 180);
    const double centre = std::min<double>(part.pos[2], 2 * kLyingHeight[side]);
    const double height = part.pos[2] > centre ? kLyingHeight[side] : centre;
    const double depth = (height - kToolHeight) / std::sin(style.pitch * mjPI / 180);
    Grasp grasp;
    const Approach approach = {{part.pos[0], part.pos[1], height},
                               {yaw, yaw + (yaw > forwards ? -180.0 : 180.0)},
                               style.pitch,
                               depth,
                               style.height};
    if (!FindGrasp(kinematics_, scene_.arms[side], approach, grasp)) return false;
    track.Turn(grasp.above, 1);
    track.Line(grasp.tool, 1);
    track.Wait(kSettle, 1);
    plan.closing[side] = track.length();
    track.Wait(kClosing, 0);
  }
  MakeEqualLong(tracks[kLeft], tracks[kRight]);
  for (const int side : {kLeft, kRight}) plan.arms[side] = tracks[side].poses();
  return true;
}

// The part as the hand has it.
Frame InsertionPlanner::HeldIn(const Situation& now, int side) {
  const Frame tool = kinematics_.ToolPose(scene_.arms[side], now.arms[side].angles);
  return Compose(Inverse(tool), now.parts[side]);
}

// Holds the part up, along the world's x axis, where it meets the other: as near as can be.
void InsertionPlanner::ShowUp(const Situation& now, const Style& style, int side, Track& track) {
  if (now.hold[side].on_table || track.tool().pos[2] < kLift) track.Shift(0, 0, kLift, 0);
  const Arm& arm = scene_.arms[side];
  const Frame held = HeldIn(now, side);
  mjtNum usual[4];
  Downwards(usual, side == kRight ? 180 : 0, style.pitch);
  Frame part = At(style.meet[0], style.meet[1], style.meet[2]);
  part.pos[0] += (side == kRight ? 1 : -1) * (kHalfLength + style.gap / 2);
  for (const Turn& way : WaysToTurn(held, usual)) {
    mju_mulQuat(part.quat, way.data(), held.quat);
    mjtNum axis[3];
    XAxis(part, axis);
    if (std::abs(axis[0]) < 0.9) continue;
    const Frame tool = Compose(part, Inverse(held));
    JointAngles angles = Guess(arm, tool);
    if (!kinematics_.Solve(arm, tool, kSolverIterations, angles)) continue;
    track.Turn(angles, 0);
    return;
  }
}

void InsertionPlanner::PlanMeet(const Situation& now, const Style& style, Plan& plan) {
  std::vector<Track> tracks;
  for (const int side : {kLeft, kRight}) {
    Track& track = tracks.emplace_back(Begin(now, style, side, true));
    ShowUp(now, style, side, track);
    track.Wait(kSettle, 0);
  }
  MakeEqualLong(tracks[kLeft], tracks[kRight]);
  for (const int side : {kLeft, kRight}) plan.arms[side] = tracks[side].poses();
}

void InsertionPlanner::PlanInsert(const Situation& now, const Style& style, Plan& plan) {
  Track left = Begin(now, style, kLeft, true), right = Begin(now, style, kRight, true);
  const Frame back = Inverse(HeldIn(now, kRight));
  const Frame peg = PegInSocket(now);
  // its axes along the socket's
  Frame line;
  std::ranges::copy(WaysToTurn(Frame(), peg.quat).front(), line.quat);
  const double side = peg.pos[0] > 0 ? 1 : -1;
  const auto go = [&](double distance) {
    line.pos[0] = side * distance;
    right.Line(Compose(Compose(now.parts[kLeft], line), back), 0);
  };
  if (side * peg.pos[0] > kMouth) {
    go(kMouth);
    right.Wait(kSettle, 0);
  }
  go(kHalfLength + kPinLength - kPress);
  right.Wait(2 * kSettle, 0);
  MakeEqualLong(left, right);
  plan.arms = {left.poses(), right.poses()};
}

}  // namespace mjp::app

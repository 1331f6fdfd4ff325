#include "tasks/pusht/planner/planner_proposals.h"

#include <algorithm>
#include <cmath>

namespace mjp::app {
namespace {

constexpr float kLow = 5, kHigh = 507;  // targets stay within, pixels
constexpr float kSafeNear = 92,
                kSafeFar = 112;         // radii of circles clear of the block, about its COG
constexpr float kStandoff = 3;          // gap left before the push, pixels
constexpr float kArcStep = 0.3f;        // radians per piece of an arc
constexpr float kInformedShare = 0.6f;  // of the proposals push where and as far as it helps
constexpr int kTournament = 4;          // random spots of which an informed proposal takes the best

Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(float s, Point a) { return {s * a.x, s * a.y}; }
float Dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }
float Length(Point a) { return std::sqrt(Dot(a, a)); }
Point Turn(Point a, float angle) {
  const float c = std::cos(angle), s = std::sin(angle);
  return {c * a.x - s * a.y, s * a.x + c * a.y};
}
Point Clamp(Point a) { return {std::clamp(a.x, kLow, kHigh), std::clamp(a.y, kLow, kHigh)}; }

// the outline relative to the centre of gravity, walked with the inside on the right (y down)
constexpr Point kOutline[] = {{-60, -45}, {60, -45}, {60, -15},  {15, -15},
                              {15, 75},   {-15, 75}, {-15, -15}, {-60, -15}};
constexpr int kEdges = 8;

constexpr float kInertia = 3000;  // of the block; its mass is 1
constexpr Point kCorners[] = {{-60, -45}, {60, -45}, {60, -15}, {15, 75}, {-15, 75}, {-60, -15}};

// Where the block stands and where its corners should go; world frame.
struct Block {
  Point center;
  float angle;
  Point arms[6], errors[6];  // corner - centre, goal's corner - corner
};

Block MakeBlock(const State& state) {
  constexpr float kCog = static_cast<float>(kCenterOfGravityY);
  constexpr float kAngle = static_cast<float>(kGoalAngle);
  Block block;
  block.angle = static_cast<float>(state.block_angle);
  const Point origin = {static_cast<float>(state.block_x), static_cast<float>(state.block_y)};
  block.center = origin + Turn({0, kCog}, block.angle);
  const Point goal =
      Point{static_cast<float>(kGoalX), static_cast<float>(kGoalY)} + Turn({0, kCog}, kAngle);
  for (int i = 0; i < 6; ++i) {
    block.arms[i] = Turn(kCorners[i], block.angle);
    block.errors[i] = goal + Turn(kCorners[i], kAngle) - block.center - block.arms[i];
  }
  return block;
}

// A place of the outline to push at.
struct Spot {
  Point at, normal;    // relative to the centre of gravity, outward; world frame
  float distance = 0;  // push that brings the corners closest to the goal's, to first order
  float gain = 0;      // decrease of the sum of squared corner distances by that push
};

// A point of the outline, uniform along it.
Spot RandomSpot(const Block& block, RandomStream* random) {
  constexpr float kPerimeter = 480;
  float along = random->Uniform(0, kPerimeter);
  int edge = 0;
  float length = 0;
  Point direction;
  for (; edge < kEdges; ++edge, along -= length) {
    const Point side = kOutline[(edge + 1) % kEdges] - kOutline[edge];
    length = Length(side);
    direction = (1 / length) * side;
    if (along < length || edge == kEdges - 1) break;
  }
  Spot spot;
  spot.at = Turn(kOutline[edge] + std::min(along, length) * direction, block.angle);
  spot.normal = Turn({direction.y, -direction.x}, block.angle);

  // what one pixel of push against the normal does to the corners, without friction
  const Point push = -1 * spot.normal;
  const float arm = spot.at.x * push.y - spot.at.y * push.x;
  const float share = 1 / (1 + arm * arm / kInertia), turn = share * arm / kInertia;
  float towards = 0, squared = 0;
  for (int i = 0; i < 6; ++i) {
    const Point motion = share * push + turn * Point{-block.arms[i].y, block.arms[i].x};
    towards += Dot(block.errors[i], motion);
    squared += Dot(motion, motion);
  }
  spot.distance = std::max(towards, 0.0f) / squared;
  spot.gain = spot.distance * towards;
  return spot;
}

// The most useful of `count` random spots.
Spot BestSpot(const Block& block, int count, RandomStream* random) {
  Spot best = RandomSpot(block, random);
  for (int i = 1; i < count; ++i) {
    const Spot spot = RandomSpot(block, random);
    if (spot.gain > best.gain) best = spot;
  }
  return best;
}

// A polyline that is walked at constant speed.
struct Route {
  Point points[64];
  int count = 0;
  float length = 0;

  void Add(Point p) {
    if (count > 0) length += Length(p - points[count - 1]);
    points[count++] = p;
  }
  // the point `distance` along the route
  Point At(float distance) const {
    for (int i = 1; i < count; ++i) {
      const float piece = Length(points[i] - points[i - 1]);
      if (distance <= piece && piece > 0) {
        return points[i - 1] + (distance / piece) * (points[i] - points[i - 1]);
      }
      distance -= piece;
    }
    return points[count - 1];
  }
};

// Writes knots that walk `route` in equal legs of at most `leg` pixels; returns the next free knot.
int Walk(const Route& route, float leg, int knot, Plan* plan) {
  const int legs = std::max(1, static_cast<int>(std::ceil(route.length / leg)));
  for (int i = 1; i <= legs && knot < kKnots; ++i) {
    plan->knots[knot++] = Clamp(route.At(route.length * static_cast<float>(i) / legs));
  }
  return knot;
}

// From `start` round `center` on a circle to the ray from `target` along `normal`, then to target.
Route GoRound(Point start, Point center, Point target, Point normal, RandomStream* random) {
  const float radius = random->Uniform(kSafeNear, kSafeFar);
  const Point offset = target - center;
  const float b = Dot(offset, normal);
  const float reach = -b + std::sqrt(std::max(0.0f, b * b + radius * radius - Dot(offset, offset)));
  const Point entry = offset + std::max(reach, 0.0f) * normal;

  constexpr float kPi = 3.14159265f;
  const float from = std::atan2(start.y - center.y, start.x - center.x);
  float sweep = std::atan2(entry.y, entry.x) - from;
  sweep -= 2 * kPi * std::round(sweep / (2 * kPi));  // the short way
  if (random->Uniform() < 0.25f) sweep -= std::copysign(2 * kPi, sweep);
  Route route;
  route.Add(start);
  const int pieces = 1 + static_cast<int>(std::abs(sweep) / kArcStep);
  for (int i = 0; i <= pieces; ++i) {
    const float angle = from + sweep * static_cast<float>(i) / pieces;
    route.Add(center + radius * Point{std::cos(angle), std::sin(angle)});
  }
  route.Add(target);
  return route;
}

}  // namespace

Plan ProposePush(const State& state, const Point& start, float speed_limit, RandomStream* random) {
  const Block block = MakeBlock(state);
  const bool informed = random->Uniform() < kInformedShare;
  const Spot spot = BestSpot(block, informed ? kTournament : 1, random);
  const Point normal = spot.normal, center = block.center;
  const Point contact = center + spot.at + (static_cast<float>(kAgentRadius) + kStandoff) * normal;
  const bool measured = informed && spot.distance > 0;
  const float distance =
      measured ? spot.distance * random->Uniform(0.4f, 1.6f) : random->Uniform(2, 120);
  const Point push = Turn(-1 * normal, (measured ? 0.15f : 0.35f) * random->Normal());

  Route approach;
  if (random->Uniform() < 0.25f) {
    approach.Add(start);
    approach.Add(contact);
  } else {
    approach = GoRound(start, center, contact, normal, random);
  }
  Route stroke;
  stroke.Add(contact);
  stroke.Add(contact + (kStandoff + std::min(distance, 120.0f)) * push);

  Plan plan;
  plan.start = start;
  const float leg = kKnotSpacing * speed_limit;
  int knot = Walk(approach, leg * random->Uniform(0.7f, 1), 0, &plan);
  knot = Walk(stroke, leg * random->Uniform(0.3f, 1), knot, &plan);
  for (; knot < kKnots; ++knot) plan.knots[knot] = plan.knots[knot - 1];
  return plan;
}

Plan Mutate(const Plan& plan, float sigma, int first_knot, RandomStream* random) {
  Plan mutant = plan;
  for (int i = first_knot; i < kKnots; ++i) {
    const Point noise = {random->Normal(), random->Normal()};
    mutant.knots[i] = Clamp(plan.knots[i] + sigma * noise);
  }
  return mutant;
}

}  // namespace mjp::app

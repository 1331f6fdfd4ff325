// The quasi-static model in SIMD lanes. Compiled once per instruction set, in the namespace
// MJPOLICY_LANES_ISA; includes nothing that defines inline functions used elsewhere. No operation
// is fused and no branch over several lanes changes the value of one, so that all instruction sets
// give the same bits.
//
// Substep: agent's PD velocity -> contacts in the block's frame -> impulses -> all positions move.

#ifdef __ARM_NEON
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

#include "tasks/pusht/planner/quasi_static.h"

namespace mjp::app {
namespace MJPOLICY_LANES_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 16;  // lanes in a register
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
typedef float Floats __attribute__((vector_size(kWidth * sizeof(float))));
typedef int Mask __attribute__((vector_size(kWidth * sizeof(int))));

#define MJPOLICY_INLINE inline __attribute__((always_inline))

constexpr float kDt = 0.01f;
constexpr float kStiffness = 100, kDamping = 20;  // the agent's PD gains
constexpr float kRadius = 15;                     // of the agent
constexpr float kInverseInertia = 1.0f / 3000;    // of the block; its mass is 1
constexpr float kSlop = 0.1f;                     // Chipmunk's
constexpr float kCorrection = 6.1258f;  // (1 - 0.9^0.6) / dt: of a penetration, per second
constexpr int kSweeps = 10;
constexpr float kWallNear = 7, kWallFar = 504;  // faces of the walls
constexpr float kBlockReach = 76.6f;            // no corner is further from the centre of gravity
constexpr float kOutsideReach = 92;             // no contact beyond: kBlockReach + kRadius

// the block's boxes and its hull's corners, relative to its centre of gravity
struct Box {
  float x0, x1, y0, y1;
};
constexpr Box kBar = {-60, 60, -45, -15}, kStem = {-15, 15, -15, 75};
constexpr int kCorners = 6;
constexpr float kCornerX[kCorners] = {-60, 60, 60, 15, -15, -60};
constexpr float kCornerY[kCorners] = {-45, -45, -15, 75, 75, -15};
constexpr float kGoalCosine = 0.70710678f;  // of 45 degrees; the goal's centre of gravity:
constexpr float kGoalCenterX = static_cast<float>(kGoalX) - 45 * kGoalCosine;
constexpr float kGoalCenterY = static_cast<float>(kGoalY) + 45 * kGoalCosine;

MJPOLICY_INLINE Floats Load(const float* p) { return *reinterpret_cast<const Floats*>(p); }
MJPOLICY_INLINE void Store(const Floats& v, float* p) { *reinterpret_cast<Floats*>(p) = v; }
MJPOLICY_INLINE Floats Set(float v) { return v - Floats{}; }
MJPOLICY_INLINE Floats Max(const Floats& a, const Floats& b) { return a > b ? a : b; }
MJPOLICY_INLINE Floats Min(const Floats& a, const Floats& b) { return a < b ? a : b; }

#if defined(__AVX512F__)
MJPOLICY_INLINE Floats Sqrt(const Floats& v) { return _mm512_maskz_sqrt_ps(0xffff, v); }
MJPOLICY_INLINE bool Any(const Mask& mask) {
  const __m512i bits = reinterpret_cast<const __m512i&>(mask);
  return _mm512_test_epi32_mask(bits, bits) != 0;
}
#elif defined(__AVX2__)
MJPOLICY_INLINE Floats Sqrt(const Floats& v) { return _mm256_sqrt_ps(v); }
MJPOLICY_INLINE bool Any(const Mask& mask) {
  return _mm256_movemask_ps(reinterpret_cast<const __m256&>(mask)) != 0;
}
#elif defined(__ARM_NEON)
MJPOLICY_INLINE Floats Sqrt(const Floats& v) { return vsqrtq_f32(v); }
MJPOLICY_INLINE bool Any(const Mask& mask) { return vmaxvq_u32(vreinterpretq_u32_s32(mask)) != 0; }
#else
MJPOLICY_INLINE Floats Sqrt(const Floats& v) { return _mm_sqrt_ps(v); }
MJPOLICY_INLINE bool Any(const Mask& mask) {
  return _mm_movemask_ps(reinterpret_cast<const __m128&>(mask)) != 0;
}
#endif

// Velocity of the block in its own frame.
struct Twist {
  Floats x, y, w;
};

// A contact that wants the gap to open at least at `speed`; (nx, ny) pushes the block, in its
// frame, at lever arm `arm` = r x n. `mass` is 0 in lanes without contact.
struct Contact {
  Floats nx, ny, arm, mass, speed, impulse;
};

MJPOLICY_INLINE void Resolve(Contact* contact, Twist* twist) {
  const Floats opening = twist->x * contact->nx + twist->y * contact->ny + twist->w * contact->arm;
  const Floats impulse =
      Max(contact->impulse + (contact->speed - opening) * contact->mass, Floats{});
  const Floats change = impulse - contact->impulse;
  contact->impulse = impulse;
  twist->x += change * contact->nx;
  twist->y += change * contact->ny;
  twist->w += change * contact->arm * kInverseInertia;
}

// Speed and mass of a contact `depth` deep whose other side moves at `approach` along the normal.
MJPOLICY_INLINE void Finish(const Mask& touches, const Floats& depth, const Floats& approach,
                            float slop, Contact* contact) {
  const Floats correction = Max(depth - slop, Floats{}) * kCorrection;
  const Floats mass = 1.0f / (1.0f + contact->arm * contact->arm * kInverseInertia);
  contact->speed = correction + approach;
  contact->mass = touches ? mass : Floats{};
  contact->impulse = Floats{};
}

// Contact of the agent at (x, y), moving at (vx, vy), with one box; all in the block's frame.
MJPOLICY_INLINE void Touch(const Box& box, const Floats& x, const Floats& y, const Floats& vx,
                           const Floats& vy, float slop, Contact* contact) {
  const Floats px = Min(Max(x, Set(box.x0)), Set(box.x1));
  const Floats py = Min(Max(y, Set(box.y0)), Set(box.y1));
  Floats nx = px - x, ny = py - y;  // from the agent to the box
  const Floats squared = nx * nx + ny * ny;
  const Floats distance = Sqrt(Max(squared, Set(1e-12f)));
  const Floats inverse = 1.0f / distance;
  nx *= inverse;
  ny *= inverse;
  Floats depth = kRadius - distance;
  const Mask inside = squared <= 0.0f;
  if (Any(inside)) {  // the agent's centre is in the box: out through the nearest face
    const Floats left = x - box.x0, right = box.x1 - x, top = y - box.y0, bottom = box.y1 - y;
    const Floats across = Min(left, right), along = Min(top, bottom);
    const Mask sideways = across < along;
    const Floats side = left < right ? Set(1) : Set(-1);
    const Floats face = top < bottom ? Set(1) : Set(-1);
    nx = inside ? (sideways ? side : Floats{}) : nx;
    ny = inside ? (sideways ? Floats{} : face) : ny;
    depth = inside ? kRadius + Min(across, along) : depth;
  }
  contact->nx = nx;
  contact->ny = ny;
  contact->arm = px * ny - py * nx;
  Finish(squared < kRadius * kRadius, depth, vx * nx + vy * ny, slop, contact);
}

// Contacts of the hull's corners with the walls, in the block's frame; returns how many any lane
// may have. At most one per corner and axis.
MJPOLICY_INLINE int TouchWalls(const Floats& center_x, const Floats& center_y, const Floats& c,
                               const Floats& s, float slop, Contact* contacts) {
  int count = 0;
  for (int i = 0; i < kCorners; ++i) {
    const Floats at[2] = {center_x + c * kCornerX[i] - s * kCornerY[i],
                          center_y + s * kCornerX[i] + c * kCornerY[i]};
    for (int axis = 0; axis < 2; ++axis) {
      const Floats depth = Max(kWallNear - at[axis], at[axis] - kWallFar);
      const Mask touches = depth > 0.0f;
      if (!Any(touches)) continue;
      const Floats sign = at[axis] < 256.0f ? Set(1) : Set(-1);
      Contact& contact = contacts[count++];
      contact.nx = sign * (axis == 0 ? c : s);
      contact.ny = sign * (axis == 0 ? -s : c);
      contact.arm = kCornerX[i] * contact.ny - kCornerY[i] * contact.nx;
      Finish(touches, depth, Floats{}, slop, &contact);
    }
  }
  return count;
}

// The worlds in registers.
struct Bodies {
  Floats x, y, vx, vy, center_x, center_y, c, s;
};

// Moves the block by the velocity that its contacts give it in this substep. (push_x, push_y) is
// the agent's velocity that the contacts see.
MJPOLICY_INLINE void MoveBlock(const Floats& push_x, const Floats& push_y, float slop, Bodies* b) {
  const Floats gap_x = b->x - b->center_x, gap_y = b->y - b->center_y;
  const bool near_walls = Any((Min(b->center_x, b->center_y) < kWallNear + kBlockReach) |
                              (Max(b->center_x, b->center_y) > kWallFar - kBlockReach));
  const bool near_agent = Any(gap_x * gap_x + gap_y * gap_y < kOutsideReach * kOutsideReach);
  if (!near_agent && !near_walls) return;

  const Floats x = b->c * gap_x + b->s * gap_y, y = b->c * gap_y - b->s * gap_x;
  const Floats vx = b->c * push_x + b->s * push_y, vy = b->c * push_y - b->s * push_x;
  Contact contacts[2 + 2 * kCorners];
  Touch(kBar, x, y, vx, vy, slop, &contacts[0]);
  Touch(kStem, x, y, vx, vy, slop, &contacts[1]);
  int count = 2;
  if (near_walls) count += TouchWalls(b->center_x, b->center_y, b->c, b->s, slop, contacts + 2);

  Twist twist = {};
  for (int i = 0; i < count; ++i) Resolve(&contacts[i], &twist);
  // one sweep solves one contact: only lanes with several go on
  Mask active = Mask{};
  for (int i = 0; i < count; ++i) active -= contacts[i].mass > 0.0f;
  const Mask several = active > 1;
  if (Any(several)) {
    for (int i = 0; i < count; ++i) contacts[i].mass = several ? contacts[i].mass : Floats{};
    for (int sweep = 1; sweep < kSweeps; ++sweep) {
      for (int i = 0; i < count; ++i) Resolve(&contacts[i], &twist);
    }
  }

  b->center_x += (b->c * twist.x - b->s * twist.y) * kDt;
  b->center_y += (b->s * twist.x + b->c * twist.y) * kDt;
  // turn by the small angle a, fifth order
  const Floats a = twist.w * kDt, a2 = a * a;
  const Floats cos_a = 1.0f - a2 * (0.5f - a2 * (1.0f / 24));
  const Floats sin_a = a * (1.0f - a2 * (1.0f / 6 - a2 * (1.0f / 120)));
  const Floats c = b->c * cos_a - b->s * sin_a, s = b->s * cos_a + b->c * sin_a;
  b->c = c;
  b->s = s;
}

// One control step of kWidth worlds.
MJPOLICY_INLINE void StepBodies(const Floats& target_x, const Floats& target_y, bool chipmunk,
                                Bodies* b) {
  for (int substep = 0; substep < kSubsteps; ++substep) {
    const Floats old_vx = b->vx, old_vy = b->vy;
    b->vx += kDt * (kStiffness * (target_x - b->x) - kDamping * b->vx);
    b->vy += kDt * (kStiffness * (target_y - b->y) - kDamping * b->vy);
    MoveBlock(chipmunk ? old_vx : b->vx, chipmunk ? old_vy : b->vy, chipmunk ? kSlop : 0, b);
    b->x += b->vx * kDt;
    b->y += b->vy * kDt;
  }
  // rounding must not let cos^2 + sin^2 drift away from 1
  const Floats unit = 1.5f - 0.5f * (b->c * b->c + b->s * b->s);
  b->c *= unit;
  b->s *= unit;
}

MJPOLICY_INLINE Bodies LoadBodies(const LaneWorlds& worlds, int i) {
  return {Load(worlds.agent_x + i),  Load(worlds.agent_y + i),  Load(worlds.agent_vx + i),
          Load(worlds.agent_vy + i), Load(worlds.center_x + i), Load(worlds.center_y + i),
          Load(worlds.cosine + i),   Load(worlds.sine + i)};
}

void Step(LaneWorlds* worlds, const LaneTargets& targets, ContactRule rule) {
  for (int i = 0; i < kLanes; i += kWidth) {
    Bodies b = LoadBodies(*worlds, i);
    StepBodies(Load(targets.x + i), Load(targets.y + i), rule == ContactRule::kChipmunk, &b);
    Store(b.x, worlds->agent_x + i);
    Store(b.y, worlds->agent_y + i);
    Store(b.vx, worlds->agent_vx + i);
    Store(b.vy, worlds->agent_vy + i);
    Store(b.center_x, worlds->center_x + i);
    Store(b.center_y, worlds->center_y + i);
    Store(b.c, worlds->cosine + i);
    Store(b.s, worlds->sine + i);
  }
}

MJPOLICY_INLINE Floats StateCost(const Bodies& b, const PlanCost& terms) {
  Floats distance = Floats{}, in_wall = Floats{};
  for (int k = 0; k < kCorners; ++k) {
    const Floats x = b.center_x + b.c * kCornerX[k] - b.s * kCornerY[k];
    const Floats y = b.center_y + b.s * kCornerX[k] + b.c * kCornerY[k];
    const Floats dx = x - (kGoalCenterX + kGoalCosine * (kCornerX[k] - kCornerY[k]));
    const Floats dy = y - (kGoalCenterY + kGoalCosine * (kCornerX[k] + kCornerY[k]));
    distance += Sqrt(dx * dx + dy * dy);
    const Floats depth = Max(Max(kWallNear - x, x - kWallFar), Max(kWallNear - y, y - kWallFar));
    in_wall += Max(depth - terms.wall_depth, Floats{});
  }
  distance *= 1.0f / kCorners;
  const Floats away_x = b.x - b.center_x, away_y = b.y - b.center_y;
  const Floats away = Sqrt(away_x * away_x + away_y * away_y);
  return terms.distance * distance + terms.root_distance * Sqrt(distance) +
         terms.reach * Max(away - terms.reach_radius, Floats{}) + terms.wall * in_wall;
}

// Cost of one leg of the path at velocity (vx, vy) after a leg at (old_vx, old_vy).
MJPOLICY_INLINE Floats LegCost(const Floats& vx, const Floats& vy, const Floats& old_vx,
                               const Floats& old_vy, const PlanCost& terms) {
  const Floats speed = Sqrt(vx * vx + vy * vy);
  const Floats turn_x = vx - old_vx, turn_y = vy - old_vy;
  const Floats per_step =
      terms.speed * speed + terms.excess * Max(speed - terms.speed_limit, Floats{});
  return kKnotSpacing * per_step + terms.turn * Sqrt(turn_x * turn_x + turn_y * turn_y);
}

void Evaluate(const LaneWorlds& start, const LanePaths& paths, const PlanCost& terms, float* cost) {
  for (int i = 0; i < kLanes; i += kWidth) {
    Bodies b = LoadBodies(start, i);
    Floats x = Set(paths.start_x), y = Set(paths.start_y), sum = Floats{}, last = Floats{};
    Floats old_vx = b.vx * (kSubsteps * kDt), old_vy = b.vy * (kSubsteps * kDt);
    for (int knot = 0; knot < kKnots; ++knot) {
      const Floats vx = (Load(paths.x[knot] + i) - x) * (1.0f / kKnotSpacing);
      const Floats vy = (Load(paths.y[knot] + i) - y) * (1.0f / kKnotSpacing);
      sum += LegCost(vx, vy, old_vx, old_vy, terms);
      for (int step = 0; step < kKnotSpacing; ++step) {
        x += vx;
        y += vy;
        StepBodies(x, y, false, &b);
        last = StateCost(b, terms);
        sum += last;
      }
      old_vx = vx;
      old_vy = vy;
    }
    Store(sum + (kHorizon - 1) * last, cost + i);
  }
}

}  // namespace

extern const LaneKernels kKernels = {&Step, &Evaluate};

}  // namespace MJPOLICY_LANES_ISA
}  // namespace mjp::app

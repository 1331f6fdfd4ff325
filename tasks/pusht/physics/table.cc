#include "tasks/pusht/physics/table.h"

#include <cmath>

#include "base/error.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {
namespace {

struct Box {
  mjtNum size[3], x, y;
};

// Of the block's body, about its centre of gravity, and of the goal's, turned by kGoalAngle; units.
// The third size is not seen from above.
constexpr Box kBlockBoxes[] = {{{0.6, 0.15, 0}, 0, -0.3}, {{0.15, 0.45, 0}, 0, 0.3}};
constexpr Box kGoalBoxes[] = {{{0.6025, 0.157028, 0}, -0.1075, 0.1075},
                              {{0.153492, 0.450477, 0}, -0.53, 0.53}};
constexpr double kNear = 1e-4;

// Whether a geom, placed at `at` in its body, is `box` turned by `angle`.
bool IsBox(const mjModel* model, int geom, const Frame& at, const Box& box, double angle) {
  if (model->geom_type[geom] != mjGEOM_BOX) return false;
  const mjtNum* size = model->geom_size + 3 * geom;
  Frame expected;
  expected.pos[0] = box.x, expected.pos[1] = box.y, expected.pos[2] = at.pos[2];
  expected.quat[0] = std::cos(angle / 2), expected.quat[3] = std::sin(angle / 2);
  return std::abs(size[0] - box.size[0]) < kNear && std::abs(size[1] - box.size[1]) < kNear &&
         Same(at, expected);
}

// Whether the geoms of `body` that `chosen` takes are the two boxes, or none where none may be.
template <typename Chosen>
bool AreBoxes(const mjModel* model, int body, const Box (&boxes)[2], double angle, bool none,
              Chosen chosen) {
  int found = 0, all = 0;
  for (int geom = 0; geom < model->ngeom; ++geom) {
    if (model->body_weldid[model->geom_bodyid[geom]] != model->body_weldid[body]) continue;
    int above = model->geom_bodyid[geom];
    while (above > body) above = model->body_parentid[above];
    if (above != body || !chosen(geom)) continue;
    ++all;
    const Frame at = GeomFrame(model, geom, body);
    for (int i = 0; i < 2; ++i) found |= IsBox(model, geom, at, boxes[i], angle) ? 1 << i : 0;
  }
  return (all == 2 && found == 3) || (none && all == 0);
}

int JointOf(const mjModel* model, const char* name, int axis) {
  const int joint = mj_name2id(model, mjOBJ_JOINT, name);
  if (joint < 0) throw BadInput("the model has no joint \"" + std::string(name) + "\"");
  const mjtNum* direction = model->jnt_axis + 3 * joint;
  const mjtNum* at = model->jnt_pos + 3 * joint;
  const bool turns = model->jnt_type[joint] == mjJNT_HINGE;
  if (std::abs(direction[axis] - 1) > 1e-9 || model->qpos0[model->jnt_qposadr[joint]] != 0 ||
      (turns && mju_norm3(at) > kNear)) {
    throw BadInput("joint \"" + std::string(name) +
                   "\" has another axis, place or reference than the benchmark's");
  }
  return joint;
}

}  // namespace

TableBodies FindBodies(const mjModel* model) {
  const int ax = JointOf(model, "ax", 0), ay = JointOf(model, "ay", 1);
  const int bx = JointOf(model, "bx", 0), by = JointOf(model, "by", 1);
  const int bt = JointOf(model, "bt", 2);
  const TableBodies bodies = {model->jnt_bodyid[ax], model->jnt_bodyid[bx]};
  const auto roots = [&](int body, int joints) {
    const int parent = model->body_parentid[body];
    return model->body_jntnum[body] == joints && model->body_weldid[parent] == 0;
  };
  if (model->jnt_bodyid[ay] != bodies.agent || model->jnt_bodyid[by] != bodies.block ||
      model->jnt_bodyid[bt] != bodies.block || bt < bx || bt < by || !roots(bodies.agent, 2) ||
      !roots(bodies.block, 3)) {
    throw BadInput(
        "agent and block do not hang on the table by joints ax, ay and bx, by, bt alone");
  }
  if (!Same(BodyFrame(model, bodies.agent, 0), BodyFrame(model, bodies.block, 0))) {
    throw BadInput("agent and block do not share the table's frame");
  }
  return bodies;
}

Frame TableFrame(const mjModel* model, const TableBodies& bodies) {
  return BodyFrame(model, bodies.block, 0);
}

GoalPose FindGoal(const mjModel* model) {
  const TableBodies bodies = FindBodies(model);
  const int goal = mj_name2id(model, mjOBJ_BODY, "goal");
  if (goal < 0 || model->body_weldid[goal] != 0) {
    throw BadInput(
        "the model has no fixed body \"goal\", so nothing says where the block is to be");
  }
  const Frame at = Compose(Inverse(TableFrame(model, bodies)), BodyFrame(model, goal, 0));
  if (std::abs(at.pos[2]) > 0.1 || std::hypot(at.quat[1], at.quat[2]) > 1e-5) {
    throw BadInput("body \"goal\" does not lie in the table's plane");
  }
  const auto solid = [&](int geom) {
    return (model->geom_contype[geom] | model->geom_conaffinity[geom]) != 0;
  };
  if (!AreBoxes(model, bodies.block, kBlockBoxes, 0, false, solid)) {
    throw BadInput(
        "the block that touches is not the benchmark's T: boxes of 1.2 x 0.3 and 0.3 x 0.9");
  }
  if (!AreBoxes(model, goal, kGoalBoxes, kGoalAngle, true, [](int) { return true; })) {
    throw BadInput(
        "what is drawn in body \"goal\" is not the benchmark's T; move the body instead");
  }
  const double turned = 2 * std::atan2(at.quat[3], at.quat[0]);
  return {kPixelsPerUnit * at.pos[0], kPixelsPerUnit * at.pos[1], kGoalAngle + turned};
}

void CheckBenchmarkGoal(const mjModel* model) {
  const GoalPose goal = FindGoal(model);
  const bool same = std::hypot(goal.x - kGoalX, goal.y - kGoalY) < kPixelsPerUnit * kNear &&
                    std::abs(std::remainder(goal.angle - kGoalAngle, 2 * mjPI)) < 1e-4;
  if (same) return;
  throw BadInput(
      "the model's body \"goal\" lies elsewhere than the benchmark's, by which episodes are "
      "scored: "
      "take models/pusht.xml, or the policy as a plugin, whose score is of the goal that is there");
}

}  // namespace mjp::app

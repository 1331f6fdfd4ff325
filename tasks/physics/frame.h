#ifndef TASKS_PHYSICS_FRAME_H_
#define TASKS_PHYSICS_FRAME_H_

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cmath>

// Places of bodies and geoms in a model, without a simulation of it.

namespace mjp::app {

struct Frame {
  mjtNum pos[3] = {0, 0, 0};
  mjtNum quat[4] = {1, 0, 0, 0};
};

inline Frame FrameOf(const mjtNum* pos, const mjtNum* quat) {
  Frame frame;
  std::copy_n(pos, 3, frame.pos);
  std::copy_n(quat, 4, frame.quat);
  mju_normalize4(frame.quat);
  return frame;
}

// `inner`, given in `outer`, in what `outer` is given in.
inline Frame Compose(const Frame& outer, const Frame& inner) {
  Frame frame;
  mju_rotVecQuat(frame.pos, inner.pos, outer.quat);
  mju_addTo3(frame.pos, outer.pos);
  mju_mulQuat(frame.quat, outer.quat, inner.quat);
  return frame;
}

inline Frame Inverse(const Frame& frame) {
  Frame inverse;
  mju_negQuat(inverse.quat, frame.quat);
  mju_rotVecQuat(inverse.pos, frame.pos, inverse.quat);
  mju_scl3(inverse.pos, inverse.pos, -1);
  return inverse;
}

// Equal to within a hundredth of a pixel of Push-T, and to 3e-5 radians.
inline bool Same(const Frame& a, const Frame& b) {
  constexpr double kNear = 1e-4, kTurned = 1e-10;
  for (int i = 0; i < 3; ++i) {
    if (!(std::abs(a.pos[i] - b.pos[i]) < kNear)) return false;
  }
  return std::abs(mju_dot(a.quat, b.quat, 4)) > 1 - kTurned;
}

// The place of `body` in the frame of `ancestor`, with every joint between at zero.
inline Frame BodyFrame(const mjModel* model, int body, int ancestor) {
  Frame frame;
  for (; body > ancestor; body = model->body_parentid[body]) {
    frame = Compose(FrameOf(model->body_pos + 3 * body, model->body_quat + 4 * body), frame);
  }
  return frame;
}

// The place of `geom` in its body as the engine takes it: where the compiler found it to share a
// frame, that frame counts, whatever the geom's own numbers are.
inline Frame LocalFrame(const mjModel* model, int geom) {
  const int body = model->geom_bodyid[geom];
  Frame frame = FrameOf(model->geom_pos + 3 * geom, model->geom_quat + 4 * geom);
  const Frame inertia = FrameOf(model->body_ipos + 3 * body, model->body_iquat + 4 * body);
  switch (model->geom_sameframe[geom]) {
    case mjSAMEFRAME_BODY:
      return {};
    case mjSAMEFRAME_INERTIA:
      return inertia;
    case mjSAMEFRAME_BODYROT:
      std::copy_n(Frame().quat, 4, frame.quat);
      break;
    case mjSAMEFRAME_INERTIAROT:
      std::copy_n(inertia.quat, 4, frame.quat);
      break;
    default:
      break;
  }
  return frame;
}

// The place of `geom` in the frame of `ancestor`, its body or one above.
inline Frame GeomFrame(const mjModel* model, int geom, int ancestor) {
  return Compose(BodyFrame(model, model->geom_bodyid[geom], ancestor), LocalFrame(model, geom));
}

}  // namespace mjp::app

#endif  // TASKS_PHYSICS_FRAME_H_

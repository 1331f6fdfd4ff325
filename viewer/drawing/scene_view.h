#ifndef VIEWER_DRAWING_SCENE_VIEW_H_
#define VIEWER_DRAWING_SCENE_VIEW_H_

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <memory>

#include "tasks/physics/model.h"
#include "viewer/snapshot.h"
#include "viewer/ui_state.h"

namespace mjp::app {

// The scene in MuJoCo's own renderer, with what the policy is about to do drawn into it, in a
// framebuffer of its own. Needs a current OpenGL context from its making to its end.
class SceneView {
 public:
  explicit SceneView(std::shared_ptr<const mjModel> model);
  ~SceneView();
  SceneView(const SceneView&) = delete;
  SceneView& operator=(const SceneView&) = delete;

  // Makes the abstract scene of a snapshot, without OpenGL.
  void Update(const SimSnapshot& snapshot, const UiState& ui);
  // Of the abstract scene (viewer/drawing/changes.h): where it is as before, so is the picture.
  uint64_t Look() const;
  // Draws it as width x height pixels into the framebuffer, with smooth edges or without.
  void Draw(int width, int height, bool smooth);
  // Whether OpenGL runs on the CPU, where smooth edges take three times as long.
  bool on_cpu() const { return on_cpu_; }
  unsigned framebuffer() const { return context_.offFBO; }

  // Mouse, in shares of the area's height. `action` is a mjtMouse.
  void MoveCamera(int action, double dx, double dy);
  void Zoom(double notches);
  void NextCamera(int direction);  // 0: the free one
  // Selects the body at (x, y) in shares of the area, y up.
  void Select(double aspect, double x, double y);
  // Starts to push (translate) or turn the selected body, moves it, or lets go.
  PerturbCommand BeginPerturb(bool translate);
  PerturbCommand MovePerturb(int action, double dx, double dy);
  PerturbCommand EndPerturb();
  bool perturbing() const { return perturb_.active != 0; }
  // From the world's x axis to the right of the picture, radians.
  double Heading() const;
  // What a mouse that moves by (dx, dy), shares of the area's height, y down, moves at `place` of
  // the world: to the right and up, or to the right and away.
  std::array<double, 3> Drag(const std::array<double, 3>& place, double dx, double dy,
                             bool away) const;
  // What `notches` of the wheel move at `place`: away from the eye.
  std::array<double, 3> Push(const std::array<double, 3>& place, double notches) const;
  // The free camera shows as much of the scene's width as of its height: it stands farther off
  // where the area is narrow. `aspect`: width over height of that.
  void Fit(double aspect);
  const mjModel* model() const { return model_.get(); }

 private:
  PerturbCommand Perturbation() const;
  void AddChunk(const float* chunk, int first, int last, const float rgba[4], double radius);
  void AddDecision(const SimSnapshot& snapshot, const UiState& ui);
  void AddTarget(const RecordingState& recording);
  void ShowHidden(bool hidden);
  void SetPose(const SimSnapshot& snapshot, const UiState& ui);

  std::shared_ptr<const mjModel> model_;
  mjModel bare_;  // model_ without plugins: a pose needs none, and must not ask a policy
  DataPtr data_;  // the pose on the screen
  mjvScene scene_;
  mjvCamera camera_;
  mjvOption option_;
  mjvPerturb perturb_;
  mjrContext context_;
  int samples_ = -1;  // that its framebuffer was made with; -1: not made here
  bool on_cpu_;
  double fitted_ = 1;  // what the free camera's distance is multiplied by
};

}  // namespace mjp::app

#endif  // VIEWER_DRAWING_SCENE_VIEW_H_

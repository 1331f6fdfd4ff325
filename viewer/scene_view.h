#ifndef VIEWER_SCENE_VIEW_H_
#define VIEWER_SCENE_VIEW_H_

#include <mujoco/mujoco.h>

#include <memory>

#include "tasks/pusht/physics/scene.h"
#include "viewer/snapshot.h"
#include "viewer/ui_state.h"

namespace mjp::app {

// The scene in MuJoCo's own renderer, with what the policy is about to do drawn into it. Needs
// a current OpenGL context from its making to its end.
class SceneView {
 public:
  // `offscreen_width`, `offscreen_height`: draw into a framebuffer of that size; 0: the window's.
  SceneView(std::shared_ptr<const mjModel> model, int offscreen_width, int offscreen_height);
  ~SceneView();
  SceneView(const SceneView&) = delete;
  SceneView& operator=(const SceneView&) = delete;

  // Makes the abstract scene of a snapshot, without OpenGL.
  void Update(const SimSnapshot& snapshot, const UiState& ui);
  // Clears `window` to the theme's background and draws the scene into `area` (pixels, y up).
  void Draw(mjrRect window, mjrRect area);
  // The frame as drawn so far, rgb (height, width, 3), row 0 at the bottom.
  void Read(mjrRect window, unsigned char* rgb) const;

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
  const mjModel* model() const { return model_.get(); }

 private:
  PerturbCommand Perturbation() const;
  void AddChunk(const float* chunk, int first, int last, const float rgba[4], double radius);
  void AddDecision(const SimSnapshot& snapshot, const UiState& ui);
  void SetPose(const SimSnapshot& snapshot, const UiState& ui);

  std::shared_ptr<const mjModel> model_;
  const mjModel bare_;  // model_ without plugins: a pose needs none, and must not ask a policy
  DataPtr data_;        // the pose on the screen
  mjvScene scene_;
  mjvCamera camera_;
  mjvOption option_;
  mjvPerturb perturb_;
  mjrContext context_;
};

}  // namespace mjp::app

#endif  // VIEWER_SCENE_VIEW_H_

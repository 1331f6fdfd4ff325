#ifndef VIEWER_RECORDING_KEYS_H_
#define VIEWER_RECORDING_KEYS_H_

#include <GLFW/glfw3.h>

#include <set>

#include "viewer/snapshot.h"
#include "viewer/ui_state.h"

namespace mjp::app {

// The keys and the gamepad of a person who records a data set.
class RecordingKeys {
 public:
  // A key that was pressed or let go while `snapshot` has a recording. Returns whether it was one
  // of these. `heading`: SceneView::Heading.
  bool OnKey(int key, int action, const SimSnapshot& snapshot, double heading, UiState& ui);
  // The state of a gamepad, each frame.
  void OnGamepad(const GLFWgamepadstate& pad, const SimSnapshot& snapshot, double heading,
                 UiState& ui);

 private:
  DriveInput Held(double heading) const;
  bool OnEpisodeKey(int key, const SimSnapshot& snapshot, UiState& ui) const;

  std::set<int> held_;
  int number_ = -1;  // of the action, that J and K drive; -1: the gripper's
  bool pad_moved_ = false;
  GLFWgamepadstate pad_ = {};  // before
};

}  // namespace mjp::app

#endif  // VIEWER_RECORDING_KEYS_H_

#ifndef VIEWER_VIEWER_H_
#define VIEWER_VIEWER_H_

#include <memory>
#include <string>
#include <vector>

#include "tasks/recording/video.h"
#include "viewer/layout.h"
#include "viewer/scene_view.h"
#include "viewer/simulation/open_simulation.h"
#include "viewer/simulation/simulation_thread.h"
#include "viewer/ui_state.h"

namespace mjp::app {

struct ViewerOptions : SimulationRequest {
  std::string episodes;            // folder of an evaluation, or empty
  double budget_ms = 0;            // of a decision; 0: the control period
  float scale = 1;                 // screen pixels per layout pixel
  int width = 1280, height = 800;  // of the window, layout pixels; of a script's pictures, pixels
};

// What the last frame took, milliseconds.
struct FrameTimes {
  double panels = 0;  // all panels, from the snapshot to the list of what is to be drawn
  double scene = 0;   // the abstract scene
  double submit = 0;  // OpenGL, without the swap
};

// All of the viewer but the window: the simulation on its thread, the panels, the scene, drawn
// into whatever OpenGL context is current on the thread that made it.
class Viewer {
 public:
  // `offscreen`: into a framebuffer of the options' size, not the window's. Throws Error for what
  // cannot be opened.
  Viewer(const ViewerOptions& options, bool offscreen);
  ~Viewer();
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  // Draws one frame of width x height pixels. ImGui's backend must have prepared its IO.
  void Frame(int width, int height);
  // The same without a window, as if 1/60 s had passed.
  void OffscreenFrame(int width, int height);
  // The last frame.
  Picture Capture() const;
  // Writes the last frame as PNG. Throws Error if it cannot.
  void WritePng(const std::string& file) const;
  // Opens what was dropped: the folder of an evaluation or of a checkpoint, or a model's file.
  void Open(const std::string& path);
  void ToggleRecording();

  const FrameTimes& times() const { return times_; }
  UiState& ui() { return ui_; }
  SceneView& scene() { return *view_; }
  SimulationThread& simulation() { return *simulation_; }

 private:
  void MakeView(const SimSnapshot& snapshot);
  void UploadPictures(const SimSnapshot& snapshot);
  void HandleSceneMouse();
  void HandlePerturb(bool translate, double dx, double dy);
  void Export(const SimSnapshot& snapshot);
  void Record();
  void ForgetNotice();

  std::unique_ptr<SimulationThread> simulation_;
  std::unique_ptr<SceneView> view_;
  mjrRect offscreen_ = {0, 0, 0, 0};  // the framebuffer drawn into; empty: the window's
  UiState ui_;
  FrameTimes times_;
  float scale_;
  bool budget_given_;
  Area scene_area_;
  int width_ = 0, height_ = 0;
  std::vector<unsigned> textures_;
  std::shared_ptr<const DecisionRecord> uploaded_;
  std::unique_ptr<VideoWriter> video_;
  double next_picture_ = 0;  // wall time of the film's next picture
  std::string notice_;       // the last one, and the wall time when it came
  double noticed_ = 0;
};

// Opens a window and runs until it is closed. Returns the program's exit code. Throws Error where
// there is no display.
int RunWindow(ViewerOptions options);

// Runs a script without a display (viewer/script.cc lists its words): a file, or the name of one
// that is built in. Pictures go into `folder`.
int RunScript(const ViewerOptions& options, const std::string& script, const std::string& folder);

// Plays and draws `frames` frames without a display, and prints what their parts and the decisions
// beside them took.
void MeasureFrames(Viewer& viewer, int width, int height, int frames);

}  // namespace mjp::app

#endif  // VIEWER_VIEWER_H_

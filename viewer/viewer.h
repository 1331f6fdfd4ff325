#ifndef VIEWER_VIEWER_H_
#define VIEWER_VIEWER_H_

#include <memory>
#include <string>
#include <vector>

#include "tasks/recording/video.h"
#include "viewer/diagnostics/attention.h"
#include "viewer/draw_panels.h"
#include "viewer/drawing/canvas.h"
#include "viewer/drawing/changes.h"
#include "viewer/drawing/scene_view.h"
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
  // Throws Error for what cannot be opened.
  explicit Viewer(const ViewerOptions& options);
  ~Viewer();
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  // Draws what has changed of a frame of width x height pixels, into a canvas of its own. Returns
  // whether anything has. ImGui's backend must have prepared its IO.
  bool Frame(int width, int height);
  // Copies the last frame into the window.
  void Show() const { canvas_.Show(); }
  // The same without a window, as if 1/60 s had passed.
  bool OffscreenFrame(int width, int height);
  // The last frame.
  Picture Capture() const;
  // Writes the last frame as PNG. Throws Error if it cannot.
  void WritePng(const std::string& file) const;
  // The same into the current folder, beside those that are there. Throws Error if it cannot.
  void KeepPicture();
  // Opens what was dropped: the folder of an evaluation or of a checkpoint, or a model's file.
  void Open(const std::string& path);
  // Writes the decisions that the history shows into the current folder. Throws Error.
  void Export(ExportFormat format);
  // Begins a video of the frames in the current folder, or ends it. Throws Error; then no video is
  // being made.
  void ToggleRecording();

  // Waits for the attention that the last frame asked for.
  void WaitForAttention();

  const FrameTimes& times() const { return times_; }
  UiState& ui() { return ui_; }
  SceneView& scene() { return *view_; }
  SimulationThread& simulation() { return *simulation_; }

 private:
  void MakeView(const SimSnapshot& snapshot);
  bool Compose(const Layout& layout);
  void UploadPictures(const SimSnapshot& snapshot);
  void AskForAttention(const SimSnapshot& snapshot);
  void HandleSceneMouse();
  void HandleHandMouse();
  void HandlePerturb(bool translate, double dx, double dy);
  void ExportWished();
  void EndFilm();
  void AddPictures();
  void Record();
  void ForgetNotice();

  std::unique_ptr<SimulationThread> simulation_;
  std::unique_ptr<SceneView> view_;
  Canvas canvas_;
  Changes changes_;
  uint64_t look_ = 0;  // of the scene that is drawn, whether with smooth edges
  bool smooth_ = false;
  int still_frames_ = 0;  // in which the scene looked the same
  UiState ui_;
  std::unique_ptr<AttentionFinder> attention_;  // made when first asked for
  FrameTimes times_;
  float scale_;
  bool budget_given_;
  Area scene_area_;
  int width_ = 0, height_ = 0;
  std::vector<unsigned> textures_;
  std::shared_ptr<const DecisionRecord> uploaded_;
  std::unique_ptr<VideoWriter> video_;
  Picture video_picture_;    // of its size
  double next_picture_ = 0;  // wall time of the video's next picture
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

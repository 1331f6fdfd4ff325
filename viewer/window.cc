// The viewer in a window of the system: GLFW, keys, drag and drop.

#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <utility>

#include "base/error.h"
#include "viewer/recording/keys.h"
#include "viewer/viewer.h"

namespace mjp::app {
namespace {

[[noreturn]] void ThrowGlfw(const std::string& what) {
  const char* reason = nullptr;
  glfwGetError(&reason);
  throw mjp::EnvironmentError(what + ": " + (reason ? reason : "unknown reason") +
                              "; without a display, run a script: mjpolicy-viewer --script readme");
}

// GLFW and its one window, for the length of a run.
class Window {
 public:
  explicit Window(ViewerOptions& options) {
    if (!glfwInit()) ThrowGlfw("cannot reach a display");
    if (options.scale <= 0) options.scale = MonitorScale();
    // the frame is a copy of the viewer's own
    glfwWindowHint(GLFW_DEPTH_BITS, 0);
    glfwWindowHint(GLFW_STENCIL_BITS, 0);
    window_ = glfwCreateWindow(static_cast<int>(options.width * options.scale),
                               static_cast<int>(options.height * options.scale), "mjpolicy-viewer",
                               nullptr, nullptr);
    if (!window_) ThrowGlfw("cannot open a window");
    glfwSetWindowSizeLimits(window_, static_cast<int>(std::ceil(kLeastWidth * options.scale)),
                            static_cast<int>(std::ceil(kLeastHeight * options.scale)),
                            GLFW_DONT_CARE, GLFW_DONT_CARE);
    glfwMakeContextCurrent(window_);
    glfwSwapInterval(1);
    ImGui::CreateContext();
  }
  ~Window() {
    if (window_) {
      // not there yet where the viewer could not be made
      if (ImGui::GetIO().BackendPlatformUserData) ImGui_ImplGlfw_Shutdown();
      ImGui::DestroyContext();
    }
    glfwTerminate();
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  GLFWwindow* get() const { return window_; }

 private:
  // The system's scale; where it says nothing, twice the size on a monitor of many pixels.
  static float MonitorScale() {
    GLFWmonitor* monitor = glfwGetPrimaryMonitor();
    if (!monitor) return 1;
    float x = 1, y = 1;
    glfwGetMonitorContentScale(monitor, &x, &y);
    const GLFWvidmode* mode = glfwGetVideoMode(monitor);
    if (y <= 1 && mode && mode->height >= 1800) return 2;
    return std::max(1.0f, y);
  }
  GLFWwindow* window_ = nullptr;
};

// Seconds from one frame of the screen to the next.
double FramePeriod() {
  GLFWmonitor* monitor = glfwGetPrimaryMonitor();
  const GLFWvidmode* mode = monitor ? glfwGetVideoMode(monitor) : nullptr;
  return 1.0 / (mode && mode->refreshRate > 0 ? mode->refreshRate : 60);
}

void ChangeSpeed(const SimSnapshot& snapshot, UiState& ui, double factor) {
  const double now = snapshot.speed > 0 ? snapshot.speed : 4;
  ui.Ask(SpeedCommand{std::clamp(now * factor, 0.125, 4.0)});
}

void GoTo(uint32_t seed, UiState& ui) {
  ui.selected = nullptr;
  ui.Ask(RestartCommand{seed});
}

void HandleControlKey(Viewer& viewer, int key) {
  if (key == GLFW_KEY_P) {
    viewer.KeepPicture();
  } else if (key == GLFW_KEY_R) {
    viewer.ToggleRecording();
  }
}

// The simulation's own keys. Returns whether this was one.
bool HandleEpisodeKey(Viewer& viewer, int key) {
  UiState& ui = viewer.ui();
  const std::shared_ptr<const SimSnapshot> snapshot = viewer.simulation().snapshot();
  switch (key) {
    case GLFW_KEY_SPACE:
      if (snapshot->finished) GoTo(snapshot->seed, ui);
      ui.selected = nullptr;
      ui.Ask(PlayCommand{!snapshot->playing});
      return true;
    case GLFW_KEY_RIGHT:
      ui.Ask(RunCommand{snapshot->step + 1});
      return true;
    case GLFW_KEY_LEFT:
      ui.selected = nullptr;
      ui.Ask(SeekCommand{snapshot->step - (snapshot->substep > 0 ? 0 : 1)});
      return true;
    case GLFW_KEY_BACKSPACE:
      GoTo(snapshot->seed, ui);
      return true;
    case GLFW_KEY_N:
      GoTo(snapshot->seed + 1, ui);
      return true;
    case GLFW_KEY_P:
      GoTo(snapshot->seed - (snapshot->seed > 0 ? 1 : 0), ui);
      return true;
    case GLFW_KEY_EQUAL:
    case GLFW_KEY_KP_ADD:
      ChangeSpeed(*snapshot, ui, 2);
      return true;
    case GLFW_KEY_MINUS:
    case GLFW_KEY_KP_SUBTRACT:
      ChangeSpeed(*snapshot, ui, 0.5);
      return true;
    default:
      return false;
  }
}

void HandleViewKey(Viewer& viewer, int key) {
  UiState& ui = viewer.ui();
  switch (key) {
    case GLFW_KEY_F1:
      ui.show_help = !ui.show_help;
      break;
    case GLFW_KEY_ESCAPE:
      ui.show_help = ui.large_pictures = false;
      ui.selected = nullptr;
      viewer.scene().NextCamera(0);
      break;
    case GLFW_KEY_LEFT_BRACKET:
      viewer.scene().NextCamera(-1);
      break;
    case GLFW_KEY_RIGHT_BRACKET:
      viewer.scene().NextCamera(1);
      break;
    case GLFW_KEY_C:
      ui.show_chunk = !ui.show_chunk;
      break;
    case GLFW_KEY_V:
      ui.large_pictures = !ui.large_pictures;
      break;
    case GLFW_KEY_G:
      ui.show_hidden = !ui.show_hidden;
      break;
    case GLFW_KEY_TAB:
      ui.next_group = true;
      break;
    case GLFW_KEY_D:
      ui.show_denoising = !ui.show_denoising;
      break;
    default:
      break;
  }
}

// What the callbacks of a window act on.
struct Shown {
  Viewer& viewer;
  RecordingKeys recording;
};

Shown& ShownIn(GLFWwindow* window) {
  return *static_cast<Shown*>(glfwGetWindowUserPointer(window));
}

// Whether it was a key of a person who records.
bool HandleRecordingKey(Shown& shown, int key, int action) {
  const auto snapshot = shown.viewer.simulation().snapshot();
  return snapshot->recording &&
         shown.recording.OnKey(key, action, *snapshot, shown.viewer.scene().Heading(),
                               shown.viewer.ui());
}

void AskGamepad(Shown& shown) {
  const auto snapshot = shown.viewer.simulation().snapshot();
  GLFWgamepadstate pad;
  if (!snapshot->recording || !glfwGetGamepadState(GLFW_JOYSTICK_1, &pad)) return;
  shown.recording.OnGamepad(pad, *snapshot, shown.viewer.scene().Heading(), shown.viewer.ui());
}

void OnKey(GLFWwindow* window, int key, int, int action, int mods) {
  // keys that are held repeat steps alone
  const bool step = key == GLFW_KEY_RIGHT || key == GLFW_KEY_LEFT;
  const bool control = (mods & GLFW_MOD_CONTROL) != 0;
  if (!control && HandleRecordingKey(ShownIn(window), key, action)) return;
  if (action == GLFW_RELEASE || (action == GLFW_REPEAT && !step) || ImGui::GetIO().WantTextInput)
    return;
  Viewer& viewer = ShownIn(window).viewer;
  try {
    if (control) {
      HandleControlKey(viewer, key);
    } else if (!HandleEpisodeKey(viewer, key)) {
      HandleViewKey(viewer, key);
    }
  } catch (const std::exception& error) {
    viewer.ui().notice = error.what();
  }
}

void OnDrop(GLFWwindow* window, int count, const char** paths) {
  Viewer& viewer = ShownIn(window).viewer;
  try {
    for (int i = 0; i < count; ++i) viewer.Open(paths[i]);
  } catch (const std::exception& error) {
    viewer.ui().notice = error.what();
  }
}

}  // namespace

int RunWindow(ViewerOptions options) {
  const Window window(options);
  Viewer viewer(options);
  Shown shown{viewer, {}};
  glfwSetWindowUserPointer(window.get(), &shown);
  glfwSetKeyCallback(window.get(), OnKey);
  glfwSetDropCallback(window.get(), OnDrop);
  ImGui_ImplGlfw_InitForOpenGL(window.get(), true);  // calls the callbacks set before
  viewer.simulation().Send(PlayCommand{true});
  glfwSetWindowRefreshCallback(window.get(), [](GLFWwindow* exposed) {
    ShownIn(exposed).viewer.Show();
    glfwSwapBuffers(exposed);
  });
  const double period = FramePeriod();
  double begun = mjp::Now(), last = begun;  // the last frame
  bool changed = false;
  while (!glfwWindowShouldClose(window.get())) {
    // until the screen shows another frame; events end it early
    const double rest = begun + period - mjp::Now();
    if (changed && rest <= 0) {
      glfwPollEvents();
    } else {
      glfwWaitEventsTimeout(changed ? rest : 0.5 * period);
    }
    int width = 0, height = 0;
    glfwGetFramebufferSize(window.get(), &width, &height);
    const bool before = std::exchange(changed, false);
    if (width <= 0 || height <= 0) continue;  // minimised
    begun = mjp::Now();
    AskGamepad(shown);
    ImGui_ImplGlfw_NewFrame();
    changed = viewer.Frame(width, height);
    if (!changed) continue;
    viewer.Show();
    glfwSwapBuffers(window.get());
    const double now = mjp::Now();
    // of frames in a row: one after a standstill was not slow
    double& rate = viewer.ui().frames_per_second;
    if (before) rate += 0.05 * (1 / std::max(1e-6, now - last) - rate);
    last = now;
  }
  return 0;
}

}  // namespace mjp::app
